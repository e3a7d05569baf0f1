#include "runtime/os/process/bounded_child.hpp"

#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include <fcntl.h>
#include <sys/eventfd.h>

using namespace troupe;
using namespace troupe::os;

TEST_SUITE("a child that is bounded") {
  using cause = child_end::cause;

  child_task shell(const std::string& script) {
    child_task task;
    task.program = "/bin/sh";
    task.words = {"sh", "-c", script};
    task.output_max = 1 << 20;
    task.within = 60s;
    return task;
  }
  child_end run(const child_task& task) {
    auto end = run_child(task);
    if (!end)
      FAIL(end.error().what);
    CHECK(!end->held);
    return *end;
  }

  TEST_CASE("what it writes, says last, and ends with") {
    const auto end = run(shell("echo out; echo first >&2; echo ' last ' >&2; echo >&2; exit 3"));
    CHECK(end.how == cause::exited);
    CHECK(end.number == 3);
    CHECK(end.output == "out\n");
    CHECK(end.last_error == " last");
  }

  TEST_CASE("what it writes is heard while it runs") {
    const int stop = ::eventfd(0, EFD_CLOEXEC);
    const unique_fd owned(stop);
    auto task = shell("echo key; exec sleep 1000");
    task.stop = stop;
    std::string heard;
    task.heard = [&heard, stop](const std::string& output) {
      heard = output;
      ::eventfd_write(stop, 1);
    };
    CHECK(run(task).how == cause::stopped);
    CHECK(heard == "key\n");
  }

  /// Those that this test was given.
  int files_of_every_child() {
    int count = 0;
    for (int file = 0; file < 1024; ++file)
      if (const int flags = ::fcntl(file, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0)
        ++count;
    return count;
  }

  TEST_CASE("its input, of any size, and nothing else of ours") {
    auto task = shell("wc -c; ls /proc/self/fd | wc -l");
    task.input = std::string(300'000, 'x');
    // One more is the directory itself.
    CHECK(run(task).output == "300000\n" + std::to_string(files_of_every_child() + 1) + "\n");
    task.input.clear();
    CHECK(run(task).output.find("0\n") == 0);
  }

  TEST_CASE("more output than a pipe holds") {
    auto task = shell("head -c 700000 /dev/zero");
    CHECK(run(task).output.size() == 700'000);
    task.output_max = 700'000;
    CHECK(run(task).how == cause::exited);
    task.output_max = 699'999;
    const auto end = run(task);
    CHECK(end.how == cause::too_much);
    CHECK(end.output.size() == 699'999);
  }

  TEST_CASE("only the end of a long complaint is kept") {
    const auto end = run(shell("yes long | head -n 100000 >&2; echo end >&2"));
    CHECK(end.how == cause::exited);
    CHECK(end.last_error == "end");
  }

  TEST_CASE("a crash is told with its signal") {
    const auto end = run(shell("echo here >&2; kill -SEGV $$"));
    CHECK(end.how == cause::signalled);
    CHECK(end.number == SIGSEGV);
    CHECK(end.last_error == "here");
  }

  TEST_CASE("a child that takes too long is killed, also one that heeds no signal") {
    auto task = shell("trap '' TERM INT; echo some; exec sleep 1000");
    task.within = 200ms;
    const auto before = std::chrono::steady_clock::now();
    const auto end = run(task);
    CHECK(std::chrono::steady_clock::now() - before >= 199ms);
    CHECK(end.how == cause::late);
    CHECK(end.output == "some\n");
  }

  TEST_CASE("a child that closes its streams is waited for all the same") {
    const auto end = run(shell("exec >&- 2>&-; sleep 0.1; exit 5"));
    CHECK(end.how == cause::exited);
    CHECK(end.number == 5);
  }

  TEST_CASE("it can be stopped") {
    auto task = shell("exec sleep 1000");
    const unique_fd stop(::eventfd(1, EFD_CLOEXEC));
    task.stop = stop.get();
    CHECK(run(task).how == cause::stopped);
  }

  TEST_CASE("a program that is not there") {
    auto task = shell("");
    task.program = "/nowhere/troupe";
    const auto end = run_child(task);
    REQUIRE(!end);
    CHECK(end.error().what == "/nowhere/troupe cannot be started: No such file or directory");
  }
}
