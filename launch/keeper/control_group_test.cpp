#include "launch/keeper/control_group.hpp"

#include "runtime/os/contents_of.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;
using namespace std::chrono_literals;

namespace fs = std::filesystem;

namespace {

std::string own(const std::string& mountinfo, const std::string& cgroup) {
  const auto found = own_control_group(mountinfo, cgroup);
  return found ? *found : "none: " + found.error().what;
}

/// One here, or nothing where none can be made; then it says why.
std::optional<control_group> one() {
  auto made = control_group::make();
  if (made)
    return std::move(*made);
  MESSAGE("no control group: " << made.error().what);
  CHECK_FALSE(made.error().what.empty());
  return std::nullopt;
}

void enter(const fs::path& group) {
  std::ofstream(group / "cgroup.procs") << 0 << std::flush;
}

/// A process that sleeps in a group.
pid_t sleeper_in(const fs::path& group) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close_range(3, ~0U, 0); // an open descriptor of the group holds it
    enter(group);
    for (;;)
      ::pause();
  }
  return pid;
}

bool until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!holds() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  return holds();
}

} // namespace

TEST_SUITE("control_group") {
  // A group that another launcher removes fails to be read, too: with ENODEV.
  TEST_CASE("a file of the kernel that fails to be read says what it could") {
    CHECK(os::contents_of("/proc/self/mem").empty());
    CHECK(os::contents_of("/proc/self/cgroup").find(':') != std::string::npos);
    CHECK(os::contents_of("/proc/no-such-file").empty());
  }

  TEST_CASE("a process's own group is where version 2 is mounted") {
    const std::string proc = "20 1 0:5 / /proc rw - proc proc rw\n";
    const std::string v2 =
        "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
    const std::string v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    const std::string hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const std::string some = "41 31 0:38 /docker/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    const std::string spaced = "41 31 0:38 / /with\\040space rw - cgroup2 cgroup rw\n";

    CHECK(own(proc + v2, "0::/\n") == "/sys/fs/cgroup");
    CHECK(own(proc + v2, "0::/user.slice/a b\n") == "/sys/fs/cgroup/user.slice/a b");
    CHECK(own(v1 + hybrid, "4:memory:/job\n0::/x\n") == "/sys/fs/cgroup/unified/x");
    CHECK(own(some, "0::/docker/a\n") == "/sys/fs/cgroup");
    CHECK(own(some, "0::/docker/a/inner\n") == "/sys/fs/cgroup/inner");
    CHECK(own(some + v2, "0::/docker/ab\n") == "/sys/fs/cgroup/docker/ab");
    CHECK(own(spaced, "0::/x\n") == "/with space/x");
  }

  TEST_CASE("why it cannot be seen") {
    const std::string v2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const std::string some = "41 31 0:38 /docker/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    CHECK(own(v2, "4:memory:/job\n") == "none: this kernel has no control groups of version 2");
    CHECK(own(v2, "") == "none: this kernel has no control groups of version 2");
    CHECK(own(v2, "0::/../other\n") == "none: our own is out of this container's sight");
    for (const std::string& mounts : {std::string(), some, std::string("31 - cgroup2\n - \n\n")})
      CHECK(own(mounts, "0::/\n") ==
            "none: control groups of version 2 are not mounted, or without our own");
  }

  TEST_CASE("what is no control group is refused, and nothing stays behind") {
    std::string place = (fs::temp_directory_path() / "troupe-group-XXXXXX").string();
    REQUIRE(::mkdtemp(place.data()) != nullptr);
    CHECK(control_group::make_below(place).error().what ==
          "groups below our own are of no use for processes");
    CHECK(fs::is_empty(place));
    fs::remove(place);
    CHECK(control_group::make_below(place).error().what == place + ": No such file or directory");
  }

  TEST_CASE("all processes in it and below it are killed at once, and nothing of it stays") {
    const auto group = one();
    if (!group)
      return;
    const auto inner = fs::path(group->path()) / "inner" / "most";
    fs::create_directories(inner);
    const std::vector<pid_t> pids{sleeper_in(group->path()), sleeper_in(inner)};
    REQUIRE(until([&] { return group->members().size() == 2; }));
    auto members = group->members();
    std::sort(members.begin(), members.end());
    CHECK(members == pids);
    CHECK_FALSE(group->remove());
    group->kill();
    for (const pid_t pid : pids) {
      int how = 0;
      CHECK(::waitpid(pid, &how, 0) == pid);
      CHECK(WTERMSIG(how) == SIGKILL);
    }
    CHECK(group->members().empty());
    // A process that starts in the killed group itself may be killed at once.
    CHECK(takes_processes(group->make_inner().get()));
    fs::create_directories(inner);
    group->tidy();
    CHECK_FALSE(fs::exists(inner.parent_path()));
    CHECK(group->remove());
    CHECK_FALSE(fs::exists(group->path()));
  }

  TEST_CASE("one without a lock is killed and removed by a later one, others stay") {
    std::string abandoned;
    std::string peopled;
    pid_t pid = 0;
    {
      const auto first = one();
      if (!first)
        return;
      abandoned = first->path();
      const auto second = one();
      REQUIRE(second);
      peopled = second->path();
      pid = sleeper_in(peopled);
      REQUIRE(until([&] { return second->members().size() == 1; }));
      CHECK(fs::exists(abandoned)); // it was open
      const auto beside = one();
      REQUIRE(beside);
      beside->end_abandoned();
      CHECK(beside->remove());
      CHECK(second->members().size() == 1);
    }
    const auto third = one();
    REQUIRE(third);
    third->end_abandoned();
    CHECK_FALSE(fs::exists(abandoned));
    int how = 0;
    CHECK(::waitpid(pid, &how, 0) == pid);
    CHECK(WTERMSIG(how) == SIGKILL);
    const auto fourth = one();
    REQUIRE(fourth);
    fourth->end_abandoned();
    CHECK_FALSE(fs::exists(peopled));
    CHECK(fs::exists(third->path()));
    CHECK(third->remove());
    CHECK(fourth->remove());
  }
}
