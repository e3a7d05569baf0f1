#include "runtime/os/stacks/dump.hpp"

#include "runtime/os/stacks/dump_text.hpp"
#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/testing/child_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#include <sys/ptrace.h>

using namespace troupe;
using namespace troupe::os;

// Their names are looked for in the stacks.
extern "C" {
[[gnu::noinline]] void test_waits_for_good(int ready) {
  tell(ready);
  for (;;)
    ::pause();
}
[[gnu::noinline]] void test_computes_for_good(int ready) {
  tell(ready);
  for (volatile unsigned long n = 0;; n = n + 1) {
  }
}
[[gnu::noinline]] void test_writes_nowhere() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is the fault
  *reinterpret_cast<volatile int*>(std::uintptr_t{24}) = 1;
}
[[gnu::noinline]] void test_calls_it(int ready) {
  test_waits_for_good(ready);
  tell(ready); // so that the call is no jump
}
}

namespace {

bool has(const diag::thread_stacks& t, const std::string& function) {
  return std::any_of(t.native.begin(), t.native.end(), [&](const diag::stack_frame& f) {
    return f.function.find(function) != std::string::npos;
  });
}

bool any_says(const std::vector<std::string>& lines, const std::string& what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(what) != std::string::npos; });
}

/// On a machine that gives a thread no processor for so long, it does not stop in time, and that is
/// what is said.
bool was_late(const process_dump& dump) {
  return std::any_of(dump.stacks.threads.begin(), dump.stacks.threads.end(), [](const auto& t) {
    return t.missing.find("did not stop") != std::string::npos ||
           t.missing.find("took too long") != std::string::npos;
  });
}

/// In the state, within a time that no test comes near.
bool comes_to(pid_t pid, char state) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (std::chrono::steady_clock::now() < until) {
    const auto stat = stat_of(fmt::format("/proc/{}", pid));
    if (stat && stat->state == state)
      return true;
    std::this_thread::yield();
  }
  return false;
}

void become_nobody() {
  constexpr uid_t nobody = 65'534;
  if (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)
    ::_exit(3);
}

} // namespace

TEST_CASE("every thread of a native program, and it goes on") {
  child_process child([](int ready) {
    std::thread one([ready] { test_calls_it(ready); });
    std::thread two([ready] { test_computes_for_good(ready); });
    one.join();
  });
  REQUIRE(child.await(2));
  stack_reader reader;
  for (int round = 0; round < 20; ++round) {
    const auto dump = reader.dump(child.pid(), {});
    REQUIRE(dump);
    if (was_late(*dump))
      continue;
    const auto& threads = dump->stacks.threads;
    REQUIRE(threads.size() == 3);
    CHECK(threads[0].id == static_cast<std::uint64_t>(child.pid()));
    CHECK(dump->stacks.missing.empty());
    CHECK(dump->stacks.python_version.empty());
    CHECK(std::any_of(threads.begin(), threads.end(), [](const auto& t) {
      return has(t, "test_waits_for_good") && has(t, "test_calls_it");
    }));
    CHECK(std::any_of(threads.begin(), threads.end(),
                      [](const auto& t) { return has(t, "test_computes_for_good"); }));
    for (const auto& t : threads)
      CHECK(t.missing == "");
    CHECK(dump->facts.tracer == 0);
  }
  const auto before = use_of(child.pid());
  REQUIRE(before);
  // It computes still: nothing has left it stopped.
  for (auto now = before; now && now->cpu == before->cpu; now = use_of(child.pid()))
    std::this_thread::yield();
}

TEST_CASE("a thread in a handler is followed to what the signal has interrupted") {
  child_process child([](int ready) {
    static int told = ready;
    stack_t stack{};
    stack.ss_size = 64u << 10;
    stack.ss_sp = std::malloc(stack.ss_size);
    ::sigaltstack(&stack, nullptr);
    struct sigaction own {};
    own.sa_flags = SA_ONSTACK;
    own.sa_handler = [](int) { test_waits_for_good(told); };
    ::sigaction(SIGSEGV, &own, nullptr);
    test_writes_nowhere();
  });
  REQUIRE(child.await());
  stack_reader reader;
  const auto dump = reader.dump(child.pid(), {});
  REQUIRE(dump);
  if (was_late(*dump))
    return;
  const auto& frames = dump->stacks.threads.at(0).native;
  const auto named = [&frames](const std::string& function) {
    return std::find_if(frames.begin(), frames.end(),
                        [&](const auto& f) { return f.function == function; });
  };
  const auto handler = named("test_waits_for_good"), signal = named(diag::signal_frame);
  const auto hit = named("test_writes_nowhere");
  REQUIRE(hit != frames.end());
  CHECK(handler < signal);
  CHECK(std::next(signal) == hit);
  CHECK(std::any_of(hit, frames.end(), [](const auto& f) { return f.function == "main"; }));
}

TEST_CASE("a stopped process is read, and is stopped as before") {
  child_process child([](int ready) {
    std::thread other([ready] { test_waits_for_good(ready); });
    test_computes_for_good(ready);
  });
  REQUIRE(child.await(2));
  ::kill(child.pid(), SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(child.pid(), &status, WUNTRACED) == child.pid());
  REQUIRE(WIFSTOPPED(status));
  stack_reader reader;
  for (int round = 0; round < 20; ++round) {
    const auto dump = reader.dump(child.pid(), {});
    REQUIRE(dump);
    CHECK(dump->facts.state == 'T');
    if (was_late(*dump))
      continue;
    REQUIRE(dump->stacks.threads.size() == 2);
    CHECK(has(dump->stacks.threads[0], "test_computes_for_good"));
    CHECK(has(dump->stacks.threads[1], "test_waits_for_good"));
    for (const auto& t : dump->stacks.threads)
      CHECK(t.missing == "");
    CHECK(comes_to(child.pid(), 'T'));
  }
  ::kill(child.pid(), SIGCONT);
  REQUIRE(::waitpid(child.pid(), &status, WCONTINUED) == child.pid());
  CHECK(WIFCONTINUED(status));
  CHECK(comes_to(child.pid(), 'R'));
}

TEST_CASE("a thread that waits in the kernel is told, not waited for") {
  // A parent of vfork() waits like one whose disk is gone.
  child_process child([](int ready) {
    if (::vfork() == 0) {
      tell(ready);
      for (;;)
        ::pause();
    }
  });
  REQUIRE(child.await());
  REQUIRE(comes_to(child.pid(), 'D'));
  stack_reader reader;
  const auto begin = std::chrono::steady_clock::now();
  const auto dump = reader.dump(child.pid(), {});
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
  REQUIRE(dump);
  REQUIRE(dump->stacks.threads.size() == 1);
  const auto& t = dump->stacks.threads[0];
  CHECK(t.state == 'D');
  CHECK(t.missing.find("state D") != std::string::npos);
  CHECK(t.waits_in.find("vfork") != std::string::npos);
  CHECK(t.missing.find(t.waits_in) != std::string::npos);
  CHECK(text_of(*dump, false).find("waiting in the kernel") != std::string::npos);
  for (const auto c : dump->facts.children)
    ::kill(c, SIGKILL);
}

TEST_CASE("a process that ends while it is read leaves what was read") {
  std::mt19937 chance(5);
  stack_reader reader;
  for (int round = 0; round < 150; ++round) {
    child_process child([](int ready) {
      for (int n = 0; n < 4; ++n)
        std::thread([ready] { test_waits_for_good(ready); }).detach();
      test_waits_for_good(ready);
    });
    REQUIRE(child.await(5));
    const auto delay = std::chrono::microseconds(chance() % 3'000);
    std::thread killer([&] {
      const auto until = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      ::kill(child.pid(), SIGKILL);
    });
    const auto dump = reader.dump(child.pid(), {});
    killer.join();
    if (dump && dump->stacks.threads.size() < 5)
      CHECK(!dump->stacks.missing.empty());
  }
}

TEST_CASE("a process that has ended and one that never was") {
  child_process child([](int) {});
  REQUIRE(comes_to(child.pid(), 'Z'));
  stack_reader reader;
  const auto ended = reader.dump(child.pid(), {});
  REQUIRE(ended);
  CHECK(any_says(ended->stacks.missing, "has ended"));
  for (const pid_t none : {0, -1, 1 << 30, INT32_MAX}) {
    const auto refused = reader.dump(none, {});
    REQUIRE(!refused);
    CHECK(refused.error().what == fmt::format("there is no process {}", none));
  }
}

TEST_CASE("another user's process: one line says what lets it be read, and the rest comes") {
  if (::geteuid() != 0) {
    MESSAGE("not root: there is no other user to be");
    return;
  }
  child_process target([](int ready) { test_waits_for_good(ready); });
  REQUIRE(target.await());
  REQUIRE(comes_to(target.pid(), 'S'));
  child_process reading([pid = target.pid()](int ready) {
    become_nobody();
    stack_reader reader;
    const auto dump = reader.dump(pid, {});
    const auto is_as_it_should =
        dump && dump->stacks.missing.size() == 1 &&
        any_says(dump->stacks.missing, "CAP_SYS_PTRACE") && dump->stacks.threads.size() == 1 &&
        dump->stacks.threads[0].state == 'S' && dump->stacks.threads[0].native.empty();
    if (is_as_it_should)
      tell(ready);
  });
  CHECK(reading.await());
}

TEST_CASE("a process without privileges reads one of the same user") {
  if (::geteuid() != 0) {
    MESSAGE("not root: the other tests are this one");
    return;
  }
  child_process family([](int ready) {
    become_nobody();
    ::prctl(PR_SET_DUMPABLE, 1); // as exec does
    const child_process target([](int t) { test_waits_for_good(t); });
    if (!target.await() || !comes_to(target.pid(), 'S'))
      return;
    stack_reader reader;
    const auto dump = reader.dump(target.pid(), {});
    if (dump && dump->stacks.missing.empty() && has(dump->stacks.threads[0], "test_waits"))
      tell(ready);
  });
  CHECK(family.await());
}

TEST_CASE("a traced process names its debugger") {
  child_process target([](int ready) { test_waits_for_good(ready); });
  REQUIRE(target.await());
  child_process debugger([pid = target.pid()](int ready) {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0)
      test_waits_for_good(ready);
  });
  REQUIRE(debugger.await());
  stack_reader reader;
  const auto dump = reader.dump(target.pid(), {});
  REQUIRE(dump);
  CHECK(dump->facts.tracer == debugger.pid());
  REQUIRE(dump->stacks.threads.size() == 1);
  CHECK(dump->stacks.threads[0].missing.find(fmt::format("process {} traces it", debugger.pid())) !=
        std::string::npos);
}

TEST_CASE("names of a process cannot write to the terminal") {
  process_dump d;
  d.facts.name = "a\x1b[2J";
  d.stacks.threads.push_back({});
  d.stacks.threads[0].name = "b\n";
  CHECK(text_of(d, false).find('\x1b') == std::string::npos);
  CHECK(text_of(d, false).find("b\n") == std::string::npos);
}
