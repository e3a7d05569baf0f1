#include "launch/worker/memory_kills.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace troupe::launch;

namespace {

struct machine {
  machine() { std::filesystem::create_directories(root + "/proc/self"); }
  ~machine() { std::filesystem::remove_all(root); }
  void holds(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  const std::string root =
      std::filesystem::temp_directory_path() / ("memory_kills_test." + std::to_string(getpid()));
};

} // namespace

TEST_CASE("the kernel's count of what it killed for lack of memory") {
  const machine m;
  CHECK_FALSE(memory_kills(m.root));
  m.holds("/proc/self/cgroup", "0::/user.slice/job\n");
  CHECK_FALSE(memory_kills(m.root));
  m.holds("/sys/fs/cgroup/user.slice/job/memory.events", "low 0\nhigh 0\noom 3\noom_kill 2\n");
  CHECK(*memory_kills(m.root) == 2);
  m.holds("/proc/self/cgroup", "0::/\n");
  m.holds("/sys/fs/cgroup/memory.events", "oom_kill 5\n");
  CHECK(*memory_kills(m.root) == 5);
  m.holds("/proc/self/cgroup", "12:cpu,cpuacct:/x\n7:hugetlb,memory:/x\n0::/nothing\n");
  m.holds("/sys/fs/cgroup/memory/x/memory.oom_control", "oom_kill_disable 0\noom_kill 9\n");
  CHECK(*memory_kills(m.root) == 9);
}
