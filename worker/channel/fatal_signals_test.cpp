// Processes that crash, with a channel that this test is the other end of. By the C ABI alone.

#include "diag/progress/page.hpp"
#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/msg.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "worker/troupe_worker.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::messages;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
/// An address that is never mapped.
constexpr std::uintptr_t nowhere = 24;

[[gnu::noinline]] void writes_nowhere() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is the fault
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

/// What doctest has installed is not what a training process has.
void with_defaults() {
  for (const int signal : fatal)
    ::signal(signal, SIG_DFL);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

class directory {
 public:
  directory() {
    std::string pattern = std::filesystem::temp_directory_path() / "fatal_signals_XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~directory() { std::filesystem::remove_all(path); }

  std::string path;
};

enum class answer { at_once, never, hang_up };

struct story_end {
  int status = 0;
  std::vector<std::pair<int, int>> told; ///< signal, thread
  pid_t process = 0;
};

/// A process that begins its channel between `before` and `after`; this test is its supervisor.
class crashing {
 public:
  crashing() : page_(::memfd_create("troupe-progress", 0)) {
    REQUIRE(::ftruncate(page_.get(), diag::page_bytes) == 0);
    listens_ = os::unique_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    static int number = 0;
    name_ = fmt::format("@troupe-fatal-test-{}-{}", ::getpid(), ++number);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    REQUIRE(::bind(listens_.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())) == 0);
    REQUIRE(::listen(listens_.get(), 4) == 0);
  }

  story_end run(const std::function<void()>& before, const std::function<void()>& after,
                answer how = answer::at_once) {
    int gate[2];
    REQUIRE(::pipe2(gate, O_CLOEXEC) == 0);
    story_end end;
    end.process = ::fork();
    REQUIRE(end.process >= 0);
    if (end.process == 0)
      play(gate[0], before, after);
    ::close(gate[0]);
    const os::unique_fd go(gate[1]);
    is_ready(listens_.get());
    os::unique_fd talks(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    listens_ = os::unique_fd();
    REQUIRE(hears(talks.get())->is<WorkerHello>());
    REQUIRE(::write(go.get(), "x", 1) == 1);
    while (talks) {
      const auto said = hears(talks.get());
      if (!said)
        break;
      REQUIRE(said->is<FatalSignal>());
      auto body = said->as<FatalSignal>().read();
      end.told.emplace_back(body->getSignal(), body->getThread());
      if (how == answer::hang_up)
        talks = os::unique_fd();
      if (how != answer::at_once)
        continue;
      const auto go_on =
          build<GoOn>(stamp{"node", {}, generation{7}, 1, said->envelope().correlation}, [](auto) {
          }).any();
      (void)::send(talks.get(), go_on.words().asBytes().begin(), go_on.size_bytes(), MSG_NOSIGNAL);
    }
    REQUIRE(::waitpid(end.process, &end.status, 0) == end.process);
    return end;
  }

 private:
  [[noreturn]] void play(int gate, const std::function<void()>& before,
                         const std::function<void()>& after) {
    with_defaults();
    ::setenv("TROUPE_PROGRESS_FD", std::to_string(page_.get()).c_str(), 1);
    ::setenv("TROUPE_CHANNEL", name_.c_str(), 1);
    before();
    char byte = 0;
    if (troupe_begin_channel("3.11", nullptr) != 1 || ::read(gate, &byte, 1) != 1)
      ::_exit(90);
    after();
    ::_exit(91);
  }

  static void is_ready(int file) {
    pollfd one{file, POLLIN, 0};
    REQUIRE(::poll(&one, 1, 30'000) == 1);
  }
  static std::optional<any_msg> hears(int from) {
    is_ready(from);
    std::string bytes(limits::worker_packet_max, '\0');
    const auto size = ::recv(from, bytes.data(), bytes.size(), 0);
    if (size <= 0)
      return std::nullopt;
    const auto said = admit(bytes.data(), static_cast<std::size_t>(size));
    REQUIRE(said);
    return *said;
  }

  os::unique_fd page_, listens_;
  std::string name_;
};

void nothing() {}

story_end crashes(const std::function<void()>& before, const std::function<void()>& after,
                  answer how = answer::at_once) {
  return crashing().run(before, after, how);
}

/// The same without a channel.
int status_without(const std::function<void()>& what) {
  const auto child = ::fork();
  if (child == 0) {
    with_defaults();
    what();
    ::_exit(91);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool ended_by(const story_end& end, int signal) {
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) == signal;
}

void install(int signal, void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction own {};
  own.sa_sigaction = handler;
  own.sa_flags = SA_SIGINFO | flags;
  ::sigaction(signal, &own, nullptr);
}

clock_type::time_point began;

/// How long the crash took to come here, in the exit code: at least the whole wait or not.
void tells_whether_waited(int, siginfo_t*, void*) {
  ::_exit(clock_type::now() - began >= limits::fatal_signal_wait ? 41 : 42);
}

/// A machine that is busy may take the answer longer than the wait; not every time.
bool goes_on_before_the_wait_is_over(answer how) {
  for (int round = 0; round < 20; ++round) {
    const auto end = crashes([] { install(SIGSEGV, tells_whether_waited); },
                             [] {
                               began = clock_type::now();
                               writes_nowhere();
                             },
                             how);
    REQUIRE(WIFEXITED(end.status));
    REQUIRE(end.told.size() == 1);
    if (WEXITSTATUS(end.status) == 42)
      return true;
  }
  return false;
}

} // namespace

TEST_CASE(
    "each fatal signal is told, with its thread, and ends the process as it does without us") {
  for (const int signal : fatal) {
    CAPTURE(signal);
    const auto end = crashes(nothing, [signal] { ::raise(signal); });
    CHECK(ended_by(end, signal));
    REQUIRE(end.told.size() == 1);
    CHECK(end.told[0] == std::pair(signal, static_cast<int>(end.process)));
  }
}

TEST_CASE("faults and abort() leave the same status, with and without a core file") {
  const directory in;
  const auto ends_in = [&in](const std::function<void()>& what, rlim_t bytes) {
    return [&in, what, bytes] {
      const rlimit cores{bytes, bytes};
      if (::chdir(in.path.c_str()) != 0 || ::setrlimit(RLIMIT_CORE, &cores) != 0)
        ::_exit(92);
      what();
    };
  };
  for (const auto& what : {std::function<void()>(writes_nowhere), std::function<void()>(::abort)})
    for (const rlim_t bytes : {rlim_t{0}, rlim_t{1u << 20}}) {
      const auto end = crashes(nothing, ends_in(what, bytes));
      CHECK(end.told.size() == 1);
      CHECK(end.status == status_without(ends_in(what, bytes)));
      CHECK(WIFSIGNALED(end.status));
    }
}

TEST_CASE("a handler that was there before is called, and is told the same") {
  const auto before = [] {
    install(SIGSEGV, [](int signal, siginfo_t* info, void*) {
      const bool same = signal == SIGSEGV && info->si_signo == SIGSEGV &&
                        info->si_code == SEGV_MAPERR &&
                        reinterpret_cast<std::uintptr_t>(info->si_addr) == nowhere;
      ::_exit(same ? 42 : 43);
    });
  };
  const auto end = crashes(before, writes_nowhere);
  CHECK(end.told.size() == 1);
  REQUIRE(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 42);
}

TEST_CASE("a handler that comes later, and calls what was there before, is called as well") {
  static struct sigaction ours;
  static int heard = 0;
  const auto after = [] {
    struct sigaction own {};
    own.sa_flags = SA_NODEFER; // as faulthandler does
    own.sa_handler = [](int signal) {
      ++heard;
      ::sigaction(signal, &ours, nullptr);
      ::raise(signal);
    };
    ::sigaction(SIGSEGV, &own, &ours);
    writes_nowhere();
  };
  const auto end = crashes(nothing, after);
  CHECK(end.told.size() == 1);
  CHECK(ended_by(end, SIGSEGV));
}

TEST_CASE("a handler that goes on, goes on, and later signals are its own") {
  static std::atomic<int> heard{0};
  const auto before = [] { install(SIGFPE, [](int, siginfo_t*, void*) { ++heard; }); };
  const auto end = crashes(before, [] {
    ::raise(SIGFPE);
    ::raise(SIGFPE);
    ::_exit(heard == 2 ? 42 : 43);
  });
  CHECK(end.told.size() == 1);
  REQUIRE(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 42);
}

TEST_CASE("a signal that is ignored stays so") {
  const auto end = crashes([] { ::signal(SIGABRT, SIG_IGN); },
                           [] {
                             ::raise(SIGABRT);
                             ::_exit(42);
                           });
  CHECK(end.told.empty());
  REQUIRE(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 42);
}

TEST_CASE("of what a process has forked nothing is told, and it ends as it would") {
  const auto by_fork = [] { return ::fork(); };
  // Without what the C library does at a fork.
  const auto by_clone = [] {
    return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  };
  for (const auto& forked : {std::function<pid_t()>(by_fork), std::function<pid_t()>(by_clone)}) {
    const auto end = crashes(nothing, [&forked] {
      const auto child = forked();
      if (child == 0)
        writes_nowhere();
      int status = 0;
      const bool same = ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
                        WTERMSIG(status) == SIGSEGV;
      ::_exit(same ? 42 : 43);
    });
    CHECK(end.told.empty());
    REQUIRE(WIFEXITED(end.status));
    CHECK(WEXITSTATUS(end.status) == 42);
  }
}

TEST_CASE("of threads that crash at the same time one is told") {
  const auto end = crashes(nothing, [] {
    std::atomic<int> ready{0};
    const auto crash = [&ready] {
      ++ready;
      while (ready < 3) {
      }
      writes_nowhere();
    };
    std::thread one(crash), two(crash);
    crash();
    one.join();
    two.join();
  });
  CHECK(end.told.size() == 1);
  CHECK(ended_by(end, SIGSEGV));
}

TEST_CASE("a stack that has overflowed is told") {
  static int (*deeper)(int) = nullptr;
  deeper = [](int n) {
    volatile char room[4096];
    room[n % 4096] = 1;
    return deeper(n + 1) + room[(n + 1) % 4096];
  };
  const auto end = crashes(nothing, [] { ::_exit(deeper(0)); });
  CHECK(end.told.size() == 1);
  CHECK(ended_by(end, SIGSEGV));
}

TEST_CASE("the process goes on when it is told to") {
  CHECK(goes_on_before_the_wait_is_over(answer::at_once));
}

TEST_CASE("the process goes on when its supervisor ends") {
  CHECK(goes_on_before_the_wait_is_over(answer::hang_up));
}

TEST_CASE("without an answer it waits, and not for ever") {
  const auto end = crashes([] { install(SIGSEGV, tells_whether_waited); },
                           [] {
                             began = clock_type::now();
                             writes_nowhere();
                           },
                           answer::never);
  CHECK(end.told.size() == 1);
  REQUIRE(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 41);
}
