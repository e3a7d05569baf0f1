// Against the kernel: what it says of a process that sleeps, runs, is stopped and is gone.

#include "runtime/os/watch/process_watch.hpp"

#include "diag/progress/page.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;
using namespace std::chrono_literals;

namespace {

/// A child that runs until it is ended, or sleeps.
class child {
 public:
  explicit child(bool runs) : pid(::fork()) {
    if (pid != 0)
      return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (runs)
      asm volatile("");
    for (;;)
      ::pause();
  }
  ~child() { end(); }

  void end() {
    if (ended_)
      return;
    ended_ = true;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  const pid_t pid;

 private:
  bool ended_ = false;
};

/// Of local ranks 0 and 1, whose processes do not take their pages.
class watched {
 public:
  watched(pid_t first, pid_t second) : page_(::memfd_create("page", MFD_CLOEXEC)) {
    REQUIRE(::ftruncate(page_.get(), diag::page_bytes) == 0);
    auto opened = process_watch::open({page_.get(), page_.get()}, "", {});
    REQUIRE(opened);
    watch = *opened;
    watch->watch({{4, 0, first, 8}, {5, 1, second, 8}});
  }

  char state_of(std::uint32_t local_rank) { return watch->read({local_rank}).at(0).state; }
  /// Within seconds.
  bool comes_to(std::uint32_t local_rank, char state) {
    for (int i = 0; i < 1'000 && state_of(local_rank) != state; ++i)
      std::this_thread::sleep_for(10ms);
    return state_of(local_rank) == state;
  }
  std::vector<diag::process_look> look() {
    std::promise<std::vector<diag::process_look>> looked;
    watch->look({0, 1}, [&](auto looks) { looked.set_value(std::move(looks)); });
    return looked.get_future().get();
  }

  std::shared_ptr<process_watch> watch;

 private:
  unique_fd page_;
};

} // namespace

TEST_CASE("a process is asleep, stopped, dead and gone, as the kernel says") {
  child sleeps(false), runs(true);
  watched w(sleeps.pid, runs.pid);
  CHECK(w.comes_to(0, 'S'));
  ::kill(sleeps.pid, SIGSTOP);
  CHECK(w.comes_to(0, 'T'));
  ::kill(sleeps.pid, SIGKILL);
  CHECK(w.comes_to(0, 'Z'));
  sleeps.end();
  CHECK(w.state_of(0) == 'X');
  CHECK(w.state_of(1) == 'R');
  // Of a rank that is not watched nothing is known.
  w.watch->watch({{5, 1, runs.pid, 8}});
  CHECK(w.state_of(0) == '\0');
}

TEST_CASE("a thread is ready whether it has a processor or waits for one") {
  child sleeps(false), runs(true);
  watched w(sleeps.pid, runs.pid);
  REQUIRE(w.comes_to(0, 'S'));
  const auto looks = w.look();
  REQUIRE(looks.size() == 2);
  CHECK(looks[0].ready.empty());
  CHECK(looks[1].ready.count(runs.pid) == 1);
  sleeps.end();
  CHECK(w.look().size() == 1);
}
