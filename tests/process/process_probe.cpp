// What a test wants to know from inside a process it started. Usage: process_probe VERB, see
// main().
#include "launch/keeper/keeper.hpp"
#include "launch/keeper/kept_process_host.hpp"
#include "launch/keeper/kept_store_host.hpp"
#include "launch/keeper/limits.hpp"
#include "runtime/os/process/spawn.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;

namespace {

/// Prints the numbers of the open file descriptors.
int print_descriptors() {
  std::string numbers;
  for (int fd = 0; fd < 1024; ++fd)
    if (std::filesystem::exists("/proc/self/fd/" + std::to_string(fd)))
      numbers += std::to_string(fd) + " ";
  std::puts(numbers.c_str());
  return 0;
}

/// Prints whether this process leads its session and its group.
int print_session() {
  std::printf("%s %s\n", ::getsid(0) == ::getpid() ? "session" : "-",
              ::getpgrp() == ::getpid() ? "group" : "-");
  return 0;
}

void tell(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

using supervisor = std::function<int(launch::keeper_client&)>;

const std::string mark = "PROBE_MARK=" + std::to_string(::getpid());

/// Keeps a supervisor, and says the errors that it reports.
int keep(const supervisor& supervise, const std::string& marked_by = {},
         const std::function<pid_t()>& fork = ::fork) {
  launch::keeper_options options;
  options.ending_signals = {SIGTERM};
  options.passed_on_signals = {SIGUSR2};
  options.supervise = supervise;
  options.serve_store = [](const launch::store_order& order, const os::unique_fd& answer) {
    os::asio_store_host host;
    for (const auto store = launch::open_as_ordered(order, answer, host); store;)
      ::pause();
  };
  options.mark = marked_by;
  options.fork = fork;
  options.report_error = [](const std::string& what) { tell(what.c_str()); };
  return launch::run_keeper(options);
}

/// Hosts two processes, prints their pids, and waits to be killed.
int keep_two(launch::keeper_client& keeper) {
  os::io_thread io, slow;
  launch::kept_process_host host(io, slow, keeper);
  for (int i = 0; i < 2; ++i) {
    const auto one =
        host.start({{"/bin/sleep", "1000"}, {}, "", "", ""}, [](ports::exit_status) {});
    if (!one)
      return 1;
    std::printf("%d\n", one->pid);
  }
  std::fflush(stdout);
  for (;;)
    ::pause();
}

/// A process that leaves a daemon behind and runs on.
int keep_daemon(launch::keeper_client& keeper, const std::string& daemon) {
  os::io_thread io, slow;
  launch::kept_process_host host(io, slow, keeper);
  const auto script = daemon + "; echo started; exec sleep 1000";
  if (!host.start({{"/bin/sh", "-c", script}, {"PATH=/bin:/usr/bin", mark}, "", "", ""},
                  [](ports::exit_status) {}))
    return 1;
  for (;;)
    ::pause();
}

/// Chains of processes, each of which forks the next one and ends.
int relay() {
  constexpr int chains = 20;
  ::signal(SIGTERM, SIG_IGN);
  for (int i = 1; i<chains&& ::fork()> 0; ++i)
    continue;
  for (;;)
    if (::fork() > 0)
      ::_exit(0);
}

[[noreturn]] void crash() {
  std::fflush(stdout);
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

/// Starts a process in its first life, crashes, and tells in its second what is known of it.
struct successor {
  const char* script;
  std::function<int(launch::kept_process_host&)> then;

  int operator()(launch::keeper_client& keeper) const {
    os::io_thread io, slow;
    launch::kept_process_host host(io, slow, keeper);
    std::printf("life %d", keeper.earlier_lives());
    if (keeper.earlier_lives() > 0)
      return then(host);
    std::puts("");
    ports::process_spec spec{{"/bin/sh", "-c", script}, {"PATH=/bin:/usr/bin"}, "", "", ""};
    spec.label = 7;
    const auto one = host.start(spec, [](ports::exit_status) {});
    const auto pid = one ? std::to_string(one->pid) : std::string();
    keeper.keep(0, pid);
    crash();
  }
};

int adopt(launch::keeper_client& keeper, const char* script, bool end_it) {
  return successor{
      script, [&](launch::kept_process_host& host) {
        const auto left = host.survivors();
        if (left.size() != 1 || std::to_string(left[0].pid) != keeper.kept(0))
          return 1;
        std::printf(": the same process, label %d\n", static_cast<int>(left[0].label));
        std::promise<ports::exit_status> end;
        host.adopt(left[0].process, [&end](ports::exit_status how) { end.set_value(how); });
        if (end_it)
          host.signal(left[0].process, SIGTERM);
        const auto how = end.get_future().get();
        std::printf("ended with %s %d\n", how.signalled ? "signal" : "code", how.number);
        std::fflush(stdout);
        return 0;
      }}(keeper);
}

std::size_t sweep(launch::kept_process_host& host) {
  std::promise<std::size_t> answer;
  host.sweep(
      {}, [](const auto&) {}, [&answer](const auto& s) { answer.set_value(s.killed); });
  return answer.get_future().get();
}

int disown(launch::keeper_client& keeper) {
  return successor{"exec sleep 1000", [&](launch::kept_process_host& host) {
                     const pid_t pid = keeper.survivors().at(0).pid;
                     (void)sweep(host);
                     const bool gone = ::kill(pid, 0) != 0;
                     tell(gone ? ": swept" : ": still there");
                     return 0;
                   }}(keeper);
}

/// A sweep that is asked for between the list of survivors and the adoption.
int adopt_after_sweep(launch::keeper_client& keeper) {
  return successor{
      "exit 5", [](launch::kept_process_host& host) {
        const auto left = host.survivors();
        (void)sweep(host);
        std::promise<ports::exit_status> end;
        host.adopt(left.at(0).process, [&end](ports::exit_status how) { end.set_value(how); });
        auto heard = end.get_future();
        const bool told = heard.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
        std::printf(": %s %d\n", told ? "ended with code" : "no end is told",
                    told ? heard.get().number : 0);
        std::fflush(stdout);
        return 0;
      }}(keeper);
}

/// It was cloned, and its supervisor did not live to say so.
int half_start(launch::keeper_client& keeper) {
  std::printf("life %d", keeper.earlier_lives());
  if (keeper.earlier_lives() == 0) {
    std::puts("");
    keeper.say<messages::ProcessStarting>();
    std::thread([] {
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
      (void)os::spawn({{"/bin/sleep", "1000"}, {}, "", "", ""}, {});
    }).join();
    crash();
  }
  os::io_thread io, slow;
  launch::kept_process_host host(io, slow, keeper);
  std::puts(host.survivors().empty() ? ": no survivor" : ": a survivor");
  std::printf("swept %d\n", static_cast<int>(sweep(host)));
  std::fflush(stdout);
  return 0;
}

int keep_bytes(launch::keeper_client& keeper) {
  std::printf("life %d", keeper.earlier_lives());
  if (keeper.earlier_lives() == 0) {
    std::puts("");
    keeper.keep(1, std::string(2'000'000, 'a'));
    keeper.keep(1, std::string(1'000'000, 'b'));
    crash();
  }
  const auto bytes = keeper.kept(1).value_or("?");
  std::printf(": %zu bytes, '%c' to '%c', %s elsewhere\n", bytes.size(), bytes.front(),
              bytes.back(), keeper.kept(0) ? "something" : "nothing");
  std::fflush(stdout);
  return 0;
}

/// A system that refuses a fork now and then: those with these numbers.
std::function<pid_t()> refusing(std::set<int> refused) {
  return [refused = std::move(refused), forks = 0]() mutable -> pid_t {
    if (refused.count(++forks) == 0)
      return ::fork();
    errno = EAGAIN;
    return -1;
  };
}

int tell_life(launch::keeper_client& keeper) {
  std::printf("life %d\n", keeper.earlier_lives());
  std::fflush(stdout);
  return 0;
}

/// The second fork is the store's.
int open_at_the_second_try(launch::keeper_client& keeper);

int run_out_of_threads(launch::keeper_client& keeper) {
  if (keeper.earlier_lives() < 2)
    throw std::system_error(EAGAIN, std::generic_category());
  return tell_life(keeper);
}

/// Ctrl-Z: the parent of this process sees it stop, and go on.
int stop_and_go_on(launch::keeper_client& keeper) {
  os::io_thread io, slow;
  launch::kept_process_host host(io, slow, keeper);
  ::kill(::getppid(), SIGTSTP);
  std::promise<int> end;
  if (!host.start({{"/bin/sh", "-c", "exit 7"}, {"PATH=/bin:/usr/bin"}, "", "", ""},
                  [&end](ports::exit_status how) { end.set_value(how.code()); }))
    return 1;
  const int code = end.get_future().get();
  std::printf("its worker's end is heard of: %d\n", code);
  std::fflush(stdout);
  return 0;
}

/// The user wants an end, and the supervisor stands still.
int stop_before_the_end(launch::keeper_client& keeper) {
  os::io_thread io;
  keeper.listen(io, {[](auto, const auto&) {}, [](const auto&) {}, [](const auto&) {}});
  std::promise<int> heard;
  keeper.on_user_signal([&heard](int number) { heard.set_value(number); });
  ::kill(::getppid(), SIGTERM);
  ::raise(SIGSTOP);
  tell(("it goes on, and hears " + std::to_string(heard.get_future().get())).c_str());
  return 0;
}

/// A parent that keeps count of its child's stops, as a shell does.
int watch_stops(const supervisor& supervise) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(keep(supervise));
  for (int status = 0; ::waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid;) {
    if (WIFSTOPPED(status))
      std::puts("it has stopped");
    else if (WIFCONTINUED(status))
      std::puts("it goes on");
    else
      break;
    std::fflush(stdout);
  }
  return 0;
}

/// Says how often it was started.
int crash_often() {
  const int code = keep([](launch::keeper_client& keeper) -> int {
    if (static_cast<std::size_t>(keeper.earlier_lives()) == limits::supervisor_crashes_max)
      std::printf("lives: %d\n", keeper.earlier_lives() + 1);
    crash();
  });
  std::printf("exit code %d\n", code);
  return 0;
}

int hear_signals(launch::keeper_client& keeper) {
  os::io_thread io, slow;
  std::mutex mutex;
  std::string heard;
  keeper.on_user_signal([&](int number) {
    const std::lock_guard lock(mutex);
    heard += " " + std::to_string(number);
  });
  const bool first = keeper.earlier_lives() == 0;
  if (first) {
    ::kill(::getppid(), SIGUSR2);
    ::kill(::getppid(), SIGTERM);
  }
  keeper.listen(io, {[](auto, const auto&) {}, [](const auto&) {}, [](const auto&) {}});
  const std::string expected = first ? " 12 15" : " 15";
  for (bool all = false; !all; ::usleep(1000)) {
    const std::lock_guard lock(mutex);
    all = heard.size() >= expected.size();
  }
  std::printf("life %d hears%s\n", keeper.earlier_lives(), heard.c_str());
  if (first)
    crash();
  std::fflush(stdout);
  return 0;
}

// ---- stores ----

bool serves(std::uint16_t port) {
  const os::unique_fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(client.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0;
}

/// A supervisor with a store; what it logs it prints.
struct store_owner {
  explicit store_owner(launch::keeper_client& of)
      : keeper(of), stores(io, of, [this](const std::string&, const log::event& e) {
          tell(e.text.c_str());
          logged = true;
        }) {}

  std::unique_ptr<ports::open_store> open(std::uint16_t port = 0) {
    auto opened = stores.open({ports::store_reach::this_machine, "127.0.0.1", port});
    if (opened)
      return std::move(*opened);
    tell(opened.error().what.c_str());
    return nullptr;
  }

  launch::keeper_client& keeper;
  std::atomic<bool> logged{false};
  os::io_thread io, slow;
  launch::kept_store_host stores;
};

/// Its successor finds it, and `then` does something with it.
int leave_store(launch::keeper_client& keeper,
                const std::function<void(store_owner&, std::uint16_t)>& then) {
  store_owner owner(keeper);
  if (keeper.earlier_lives() == 0) {
    const auto store = owner.open();
    tell(store && serves(store->port()) ? "it serves" : "it does not serve");
    keeper.keep(0, std::to_string(store ? store->port() : 0));
    crash();
  }
  const auto port = static_cast<std::uint16_t>(std::stoul(keeper.kept(0).value_or("0")));
  tell(serves(port) ? "it still serves" : "it serves no more");
  then(owner, port);
  while (serves(port))
    ::usleep(1000);
  tell("it has ended");
  return 0;
}

void adopt_store(store_owner& owner, std::uint16_t port) {
  const auto store = owner.stores.adopt(port);
  tell(store && store->port() == port && serves(port) ? "it is ours" : "it is not ours");
}

void sweep_store(store_owner& owner, std::uint16_t) {
  os::io_thread slow;
  launch::kept_process_host host(owner.io, slow, owner.keeper);
  (void)sweep(host);
}

/// One after the other at the same port, and one beside it.
int open_stores(launch::keeper_client& keeper) {
  store_owner owner(keeper);
  auto store = owner.open();
  const auto port = store->port();
  for (int i = 0; i < 3; ++i) {
    store.reset();
    store = owner.open(port);
    tell(store && serves(port) ? "it serves" : "it does not serve");
  }
  const auto other = owner.open();
  tell(other && serves(other->port()) && serves(port) ? "both serve" : "one does not serve");
  return 0;
}

int open_at_the_second_try(launch::keeper_client& keeper) {
  store_owner owner(keeper);
  const auto store = owner.open();
  tell(store && serves(store->port()) ? "it serves" : "it does not serve");
  return 0;
}

/// What a port that is taken is worth, and a store that ends by itself.
int lose_store(launch::keeper_client& keeper) {
  store_owner owner(keeper);
  os::asio_store_host somebody;
  const auto taken = somebody.open({ports::store_reach::this_machine, "127.0.0.1", 0});
  tell(owner.open((*taken)->port()) ? "it serves" : "it does not serve");
  const auto store = owner.open();
  std::ifstream children("/proc/" + std::to_string(::getppid()) + "/task/" +
                         std::to_string(::getppid()) + "/children");
  for (pid_t pid = 0; children >> pid;) {
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
    if (name == "troupe-store")
      ::kill(pid, SIGKILL);
  }
  while (serves(store->port()) || !owner.logged)
    ::usleep(1000);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "fds")
    return print_descriptors();
  if (verb == "session")
    return print_session();
  if (verb == "keep-two")
    return keep(keep_two);
  if (verb == "keep-daemon")
    return keep([](auto& keeper) { return keep_daemon(keeper, "setsid -f sleep 1000"); }, mark);
  if (verb == "keep-bare-daemon")
    return keep([](auto& keeper) { return keep_daemon(keeper, "setsid -f env -i sleep 1000"); },
                mark);
  if (verb == "relay")
    return relay();
  if (verb == "adopt")
    return keep([](auto& keeper) { return adopt(keeper, "exec sleep 1000", true); });
  if (verb == "adopt-ended")
    return keep([](auto& keeper) { return adopt(keeper, "exit 5", false); });
  if (verb == "adopt-after-sweep")
    return keep(adopt_after_sweep);
  if (verb == "disown")
    return keep(disown);
  if (verb == "half-started")
    return keep(half_start);
  if (verb == "keep")
    return keep(keep_bytes);
  if (verb == "signals")
    return keep(hear_signals);
  if (verb == "crash")
    return crash_often();
  if (verb == "fork-refused")
    return keep(tell_life, mark, refusing({1, 2, 3, 5})); // the first fork is the orphan reaper's
  if (verb == "store-fork-refused")
    return keep(open_at_the_second_try, {}, refusing({2, 3}));
  if (verb == "threads-refused")
    return keep(run_out_of_threads);
  if (verb == "stopped")
    return watch_stops(stop_and_go_on);
  if (verb == "stopped-before-the-end")
    return keep(stop_before_the_end);
  if (verb == "store-left")
    return keep([](auto& keeper) { return leave_store(keeper, adopt_store); });
  if (verb == "store-unwanted")
    return keep([](auto& keeper) { return leave_store(keeper, sweep_store); });
  if (verb == "stores")
    return keep(open_stores);
  if (verb == "store-lost")
    return keep(lose_store);
  return 2;
}
