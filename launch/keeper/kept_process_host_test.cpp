#include "launch/keeper/keeper.hpp"
#include "runtime/os/process/local_services.hpp"
#include "tests/process/kept_world.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdio>

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a kept process host keeps the promises of a process host") {
  check_process_contract([] { return std::make_unique<real_world>(); });
}

TEST_CASE("a process gets the environment it was given and nothing else") {
  const scratch place;
  real_world world;
  CHECK(world.run({{"/usr/bin/env"}, {"A=1", "B=two words", "EMPTY="}, "", place / "out", ""})
            .success());
  CHECK(content(place / "out") == "A=1\nB=two words\nEMPTY=\n");
}

TEST_CASE("a program without a slash is looked for in the PATH of its own environment") {
  const scratch place;
  real_world world;
  const std::string script = place / "greet";
  std::ofstream(script) << "#!/bin/sh\necho hello from here\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto path = "PATH=/nonexistent:" + std::filesystem::path(script).parent_path().string();
  CHECK(world.run({{"greet"}, {path}, "", place / "out", ""}).success());
  CHECK(content(place / "out") == "hello from here\n");
}

TEST_CASE("a process starts in its working directory, and a relative program is looked for there") {
  const scratch place;
  real_world world;
  std::filesystem::create_directory(place / "inside");
  std::ofstream(place / "inside/where") << "#!/bin/sh\nexec /bin/pwd -P\n";
  std::filesystem::permissions(place / "inside/where", std::filesystem::perms::owner_all);
  CHECK(world.run({{"./where"}, {}, place / "inside", place / "out", ""}).success());
  CHECK(content(place / "out") == std::filesystem::canonical(place / "inside").string() + "\n");
}

TEST_CASE("output goes to its files, which are emptied first") {
  const scratch place;
  real_world world;
  std::ofstream(place / "out") << "something old and long";
  auto spec = shell("echo to out; echo to err >&2");
  spec.stdout_file = place / "out";
  spec.stderr_file = place / "err";
  CHECK(world.run(spec).success());
  CHECK(content(place / "out") == "to out\n");
  CHECK(content(place / "err") == "to err\n");
}

TEST_CASE("both streams may go to one file without overwriting each other") {
  const scratch place;
  real_world world;
  auto spec = shell("echo one; echo two >&2; echo three");
  spec.stdout_file = spec.stderr_file = place / "both";
  CHECK(world.run(spec).success());
  CHECK(content(place / "both") == "one\ntwo\nthree\n");
}

TEST_CASE("a process leads a session and a group of its own") {
  const scratch place;
  real_world world;
  CHECK(world.run(probe("session", place / "out")).success());
  CHECK(content(place / "out") == "session group\n");
}

TEST_CASE("no file descriptor of ours reaches a process, not even one that exec would keep") {
  const scratch place;
  real_world world;
  const int inherited = ::open("/dev/null", O_RDONLY);
  REQUIRE(inherited > 2);
  CHECK(world.run(probe("fds", place / "out")).success());
  ::close(inherited);
  CHECK(content(place / "out") == "0 1 2 \n");
}

TEST_CASE("but those that it is to have, under their numbers") {
  const scratch place;
  real_world world;
  const int given = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto spec = probe("fds", place / "out");
  spec.descriptors = {given};
  CHECK(world.run(spec).success());
  ::close(other);
  ::close(given);
  CHECK(content(place / "out") == fmt::format("0 1 2 {} \n", given));
}

TEST_CASE("no signal is blocked or ignored in a process, whatever is in ours") {
  const scratch place;
  real_world world;
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  sigset_t one;
  sigset_t mask;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, &mask);
  auto spec = shell("exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
  spec.stdout_file = place / "out";
  CHECK(world.run(spec).success());
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  std::signal(SIGPIPE, before);
  CHECK(content(place / "out") == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("processes get the limit of open files that the host was told, ours is raised") {
  const scratch place;
  const auto limit = os::raise_open_files();
  CHECK(limit.before <= limit.now);
  CHECK(os::raise_open_files().before == limit.now);
  real_world world({123});
  auto spec = shell("ulimit -Sn");
  spec.stdout_file = place / "out";
  CHECK(world.run(spec).success());
  CHECK(content(place / "out") == "123\n");
}

TEST_CASE("what cannot be started is named in one line") {
  const scratch place;
  real_world world;
  const auto with = [](const std::string& program) {
    return ports::process_spec{{program}, {}, "", "", ""};
  };
  std::ofstream(place / "plain") << "text";
  std::ofstream(place / "lost") << "#!/no/such/interpreter\n";
  std::ofstream(place / "garbage") << "\x01\x02\x03";
  for (const auto* name : {"lost", "garbage"})
    std::filesystem::permissions(place / name, std::filesystem::perms::owner_all);

  CHECK(world.error_text({{}, {}, "", "", ""}) == "no program was given");
  CHECK(world.error_text({{"nowhere"}, {"PATH=/bin"}, "", "", ""}) ==
        "program 'nowhere' was not found in PATH (/bin)");
  CHECK(world.error_text(with("/no/such")) == "program '/no/such' does not exist");
  CHECK(world.error_text(with("/tmp")) == "program '/tmp' is a directory");
  CHECK(world.error_text(with(place / "plain")) ==
        "program '" + (place / "plain") + "' is not executable");
  CHECK(world.error_text(with(place / "lost")) ==
        "program '" + (place / "lost") + "': its interpreter (#! line or loader) does not exist");
  CHECK(world.error_text(with(place / "garbage")) ==
        "program '" + (place / "garbage") +
            "' is neither for this machine nor a script with a #! line");

  auto spec = shell("exit 0");
  spec.working_directory = "/no/such/place";
  CHECK(world.error_text(spec) == "working directory '/no/such/place': No such file or directory");
  spec = shell("exit 0");
  spec.stdout_file = "/no/such/place/log";
  CHECK(world.error_text(spec) == "log file '/no/such/place/log': No such file or directory");
  spec.stdout_file = "";
  spec.stderr_file = "/tmp";
  CHECK(world.error_text(spec) == "log file '/tmp': Is a directory");
  CHECK(world.until([] { return descendants().empty(); })); // the keeper reaps when it hears of it
}

TEST_CASE("a signal reaches the whole group, also what the process started") {
  real_world world;
  std::promise<ports::exit_status> end;
  const auto one = world.host().start(shell("sleep 1000 & wait"),
                                      [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(one);
  REQUIRE(world.until([&world] { return world.alive() == 2; }));
  world.host().signal(one->process, SIGTERM);
  CHECK(end.get_future().get().code() == -SIGTERM);
  CHECK(world.until([&world] { return world.alive() == 0; }));
}

TEST_CASE("a signal for a process alone does not reach what it has started") {
  real_world world;
  std::promise<ports::exit_status> end;
  const auto one = world.host().start(shell("sleep 1000 & trap 'kill $!; exit 7' USR1; wait"),
                                      [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(one);
  REQUIRE(world.until([&] { return world.host().takes_signal(one->pid, SIGUSR1); }));
  CHECK_FALSE(world.host().takes_signal(one->pid, SIGUSR2));
  REQUIRE(world.until([&world] { return world.alive() == 2; }));
  world.host().signal_alone(one->process, SIGUSR1);
  CHECK(end.get_future().get().code() == 7); // `kill` has found the child alive, or it had failed
  CHECK(world.until([&world] { return world.alive() == 0; }));
  CHECK_FALSE(world.host().takes_signal(one->pid, SIGUSR1));
}

TEST_CASE("sweep follows a family of orphans down to its last member") {
  real_world world;
  CHECK(world.run(shell("setsid -f sh -c 'setsid sh -c \"sleep 1000 & sleep 1000\" & sleep 1000'"))
            .success());
  REQUIRE(world.until([&world] { return world.alive() == 5; }));
  CHECK(world.sweep() == 5);
  CHECK(descendants().empty());
}

TEST_CASE("orphans that ended by themselves are reaped by the next sweep and not counted") {
  real_world world;
  CHECK(world.run(shell("setsid -f true; setsid -f true")).success());
  REQUIRE(world.until([&world] { return world.alive() == 0; }));
  CHECK(world.sweep() == 0);
  CHECK(descendants().empty());
}

TEST_CASE("children that the keeper had before are left alone") {
  real_world world;
  CHECK(world.sweep() == 0);
  CHECK(world.until([] { return state_of(there_before) == "S"; }));
}

TEST_CASE("sweeps asked for together are all answered") {
  real_world world;
  CHECK(world.run(shell("setsid -f sleep 1000")).success());
  std::promise<std::size_t> first;
  std::promise<std::size_t> second;
  const auto tells = [](auto& promise) {
    return [&promise](const ports::swept& what) { promise.set_value(what.killed); };
  };
  world.host().sweep(
      {}, [](const auto&) {}, tells(first));
  world.host().sweep(
      {}, [](const auto&) {}, tells(second));
  CHECK(first.get_future().get() == 1);
  CHECK(second.get_future().get() == 0);
}

TEST_CASE("processes die with their keeper, even if that is killed") {
  const scratch place;
  real_world world;
  std::promise<ports::exit_status> end;
  const auto hosting =
      world.host().start(probe("keep-two", place / "pids"),
                         [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(hosting);
  std::vector<pid_t> pids;
  REQUIRE(world.until([&place, &pids] {
    std::istringstream lines(content(place / "pids"));
    pids.clear();
    for (pid_t pid = 0; lines >> pid;)
      pids.push_back(pid);
    return pids.size() == 2;
  }));
  // Its processes have sessions of their own, so this hits none of them.
  world.host().signal(hosting->process, SIGKILL);
  CHECK(end.get_future().get().code() == -SIGKILL);
  CHECK(world.until([&world] { return world.alive() == 0; }));
}

TEST_CASE("a daemon of theirs dies with a killed keeper as well: the orphan reaper kills it") {
  const scratch place;
  real_world world;
  std::promise<ports::exit_status> end;
  const auto hosting =
      world.host().start(probe("keep-daemon", place / "out"),
                         [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(hosting);
  REQUIRE(world.until([&place] { return content(place / "out") == "started\n"; }));
  REQUIRE(world.until([&world] { return world.alive() == 5; })); // with supervisor, orphan reaper
  world.host().signal(hosting->process, SIGKILL);
  CHECK(end.get_future().get().code() == -SIGKILL);
  CHECK(world.until([&world] { return world.alive() == 0; }));
}

TEST_CASE("a daemon that has cleared its environment dies with them where there is a group") {
  const scratch place;
  real_world world;
  std::promise<ports::exit_status> end;
  const auto hosting =
      world.host().start(probe("keep-bare-daemon", place / "out"),
                         [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(hosting);
  REQUIRE(world.until([&place] { return content(place / "out") == "started\n"; }));
  REQUIRE(world.until([&world] { return world.alive() == 5; }));
  const auto groups = inner_groups();
  world.host().signal(hosting->process, SIGKILL);
  CHECK(end.get_future().get().code() == -SIGKILL);
  if (keeper->group()) {
    CHECK_FALSE(groups.empty());
    CHECK(world.until([&] { return world.alive() == 0 && inner_groups().empty(); }));
  } else {
    MESSAGE("no control group: the daemon stays (" << keeper->group().error().what << ")");
    CHECK(world.until([&world] { return world.alive() == 1; }));
    CHECK(world.sweep() == 1);
  }
}

TEST_CASE("a process lives in the keeper's group from its first moment, the supervisor does not") {
  const scratch place;
  real_world world;
  auto spec = shell("cat /proc/self/cgroup");
  spec.stdout_file = place / "out";
  CHECK(world.run(spec).success());
  const auto own = content("/proc/self/cgroup");
  if (!keeper->group()) {
    MESSAGE("no control group: " << keeper->group().error().what);
    CHECK(content(place / "out") == own);
    return;
  }
  const auto name = std::filesystem::path(keeper->group()->path()).filename().string();
  CHECK(content(place / "out").find("/" + name + "/") != std::string::npos);
  CHECK(own.find(name) == std::string::npos);
}

TEST_CASE("those that fork all the time, and are deaf and bare, are ended by a sweep") {
  real_world world;
  CHECK(world.run(shell("setsid -f env -i " TROUPE_PROCESS_PROBE " relay")).success());
  REQUIRE(world.until([&world] { return world.alive() > 0; }));
  const auto began = std::chrono::steady_clock::now();
  CHECK(world.sweep() >= 1);
  CHECK(std::chrono::steady_clock::now() - began < limits::kill_within);
  CHECK(descendants().empty());
  if (keeper->group())
    CHECK(keeper->group()->members().empty());
}

TEST_CASE("what is started during a sweep waits for it, and is not killed by it") {
  const scratch place;
  real_world world;
  for (int i = 0; i < 50; ++i) {
    std::promise<ports::exit_status> end;
    world.host().sweep(
        {}, [](const auto&) {}, [](const auto&) {});
    REQUIRE(world.host().start(shell("exit 3"),
                               [&end](ports::exit_status status) { end.set_value(status); }));
    CHECK(end.get_future().get().code() == 3);
  }
}

TEST_CASE("a storm of exits leaves no zombie") {
  real_world world;
  constexpr int count = 300;
  std::atomic<int> ended{0};
  const auto count_end = [&ended](ports::exit_status) { ++ended; };
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&world, &count_end] {
      for (int i = 0; i < count / 3; ++i)
        if (!world.host().start({{"/bin/true"}, {}, "", "", ""}, count_end))
          std::abort();
    });
  for (auto& caller : callers)
    caller.join();
  CHECK(world.until([&ended] { return ended == count; }));
  CHECK(descendants().empty());
}

TEST_CASE("a small file is read up to the limit, anything else gives nothing") {
  const scratch place;
  real_world world;
  std::ofstream(place / "error.json") << "0123456789";
  std::ofstream(place / "empty");
  CHECK(world.host().read_small_file(place / "error.json", 100) == "0123456789");
  CHECK(world.host().read_small_file(place / "error.json", 4) == "0123");
  CHECK(world.host().read_small_file(place / "empty", 4) == "");
  CHECK_FALSE(world.host().read_small_file(place / "missing", 4));
  CHECK_FALSE(world.host().read_small_file("/tmp", 4));
  REQUIRE(::mkfifo((place / "pipe").c_str(), 0600) == 0);
  CHECK_FALSE(world.host().read_small_file(place / "pipe", 4));
  CHECK(world.host().read_end_of_file(place / "error.json", 100) == "0123456789");
  CHECK(world.host().read_end_of_file(place / "error.json", 4) == "6789");
  CHECK(world.host().read_end_of_file(place / "empty", 4) == "");
  CHECK_FALSE(world.host().read_end_of_file(place / "missing", 4));
  CHECK_FALSE(world.host().read_end_of_file(place / "pipe", 4));
}

namespace {

bool can_listen(std::uint16_t port, in_addr_t address) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(address);
  const bool can = ::bind(listening, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 &&
                   ::listen(listening, 1) == 0;
  ::close(listening);
  return can;
}

} // namespace

/// Another process of this machine may take one before it is tried, but not each time.
TEST_CASE("a free port can be listened on, on every address") {
  real_world world;
  bool any = false;
  for (int tries = 0; tries < 10 && !any; ++tries) {
    const auto port = world.host().free_port("127.0.0.1");
    REQUIRE(port);
    any = can_listen(*port, INADDR_LOOPBACK) && can_listen(*port, INADDR_ANY);
  }
  CHECK(any);
}

namespace {

/// It takes its name when it has started.
pid_t find_last_process() {
  for (;; std::this_thread::sleep_for(1ms))
    for (const pid_t pid : descendants())
      if (content("/proc/" + std::to_string(pid) + "/comm") == "troupe-reaper\n")
        return pid;
}

} // namespace

int main(int argc, char** argv) {
  char* const sleep[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
  if (::posix_spawn(&there_before, "/bin/sleep", nullptr, nullptr, sleep, nullptr) != 0)
    return 1;
  // Ignored, as some leave it to whom they start, the kernel would reap before we hear of ends.
  std::signal(SIGCHLD, SIG_IGN);
  launch::keeper_options options;
  options.report_error = [](const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
  };
  options.supervise = [argc, argv](launch::keeper_client& client) {
    if (client.earlier_lives() > 0)
      return 1;
    os::io_thread thread, slow_thread;
    keeper = &client;
    io = &thread;
    slow = &slow_thread;
    if (client.group())
      last_process = find_last_process();
    return doctest::Context(argc, argv).run();
  };
  const int code = launch::run_keeper(options);
  ::kill(there_before, SIGKILL);
  return code;
}
