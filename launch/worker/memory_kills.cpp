#include "launch/worker/memory_kills.hpp"

#include <fstream>
#include <sstream>

namespace troupe::launch {

namespace {

/// The number behind "oom_kill" in a file of lines "name number".
std::optional<std::uint64_t> kills_in(const std::string& path) {
  std::ifstream file(path);
  std::string name;
  std::uint64_t number = 0;
  while (file >> name >> number)
    if (name == "oom_kill")
      return number;
  return std::nullopt;
}

} // namespace

std::optional<std::uint64_t> memory_kills(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" is version 2, "7:memory,…:/path" version 1.
    std::istringstream in(line);
    std::string number, controllers, path;
    std::getline(in, number, ':');
    std::getline(in, controllers, ':');
    std::getline(in, path);
    if (path == "/")
      path.clear();
    const bool unified = number == "0" && controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos)
      continue;
    const auto found =
        kills_in(root + "/sys/fs/cgroup" +
                 (unified ? path + "/memory.events" : "/memory" + path + "/memory.oom_control"));
    if (found)
      return found;
  }
  return std::nullopt;
}

} // namespace troupe::launch
