#include "tests/process/process_tree.hpp"

#include "runtime/base/invariant.hpp"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>

namespace troupe::testing {

namespace {

void collect(pid_t pid, std::vector<pid_t>& found) {
  std::error_code gone;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) {
      found.push_back(child);
      collect(child, found);
    }
  }
}

} // namespace

scratch::scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-process-XXXXXX").string();
  invariant(::mkdtemp(name.data()) != nullptr, "no directory can be made");
  path_ = name;
}

std::string content(const std::string& file) {
  std::ostringstream all;
  all << std::ifstream(file).rdbuf();
  return all.str();
}

std::string state_of(pid_t pid) {
  const auto stat = content("/proc/" + std::to_string(pid) + "/stat");
  const auto end_of_name = stat.rfind(") ");
  return end_of_name == std::string::npos ? "" : stat.substr(end_of_name + 2, 1);
}

/// The kernel's list may lack a child when another one is reaped while it is read; so until two
/// readings agree.
std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found;
  collect(pid, found);
  for (;;) {
    std::vector<pid_t> again;
    collect(pid, again);
    if (again == found)
      return found;
    found = std::move(again);
  }
}

std::size_t alive_among(const std::vector<pid_t>& pids) {
  return static_cast<std::size_t>(std::count_if(pids.begin(), pids.end(), [](pid_t pid) {
    const auto state = state_of(pid);
    return !state.empty() && state != "Z";
  }));
}

ports::process_spec shell(const std::string& script) {
  return {{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "", "", ""};
}

} // namespace troupe::testing
