#include "launch/keeper/control_group.hpp"

#include "launch/keeper/limits.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/process/clone_into.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

constexpr auto name_begins = "troupe-";
/// Another launcher that tidies up may come between our making one and our opening it.
constexpr int attempts = 3;

tl::unexpected<error> none(std::string why) {
  return failure(errc::unavailable, std::move(why));
}

/// A space in the table of mounts is "\040".
std::string unescaped(const std::string& word) {
  std::string plain;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (word[i] == '\\' && i + 3 < word.size()) {
      plain += static_cast<char>(std::strtol(word.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += word[i];
    }
  return plain;
}

struct mount {
  std::string root;  ///< which group
  std::string point; ///< where
};

/// If the line is about control groups of version 2.
std::optional<mount> mount_in(const std::string& line) {
  std::istringstream words(line);
  const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
  const auto dash = std::find(all.begin(), all.end(), "-");
  if (all.size() < 6 || std::distance(dash, all.end()) < 2 || dash[1] != "cgroup2")
    return std::nullopt;
  return mount{unescaped(all[3]), unescaped(all[4])};
}

std::optional<std::string> group_in(const std::string& cgroup) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("0::/", 0) == 0)
      return line.substr(3);
  return std::nullopt;
}

/// What there is of a path behind a folder of it.
std::optional<std::string> below(const std::string& folder, const std::string& path) {
  if (path == folder)
    return std::string();
  const auto prefix = folder == "/" ? folder : folder + "/";
  if (path.compare(0, prefix.size(), prefix) != 0)
    return std::nullopt;
  return path.substr(prefix.size() - 1);
}

std::vector<fs::path> groups_in(const fs::path& group) {
  std::vector<fs::path> found;
  std::error_code gone;
  for (const auto& entry : os::entries_of(group))
    if (entry.is_directory(gone))
      found.push_back(entry.path());
  return found;
}

/// Deepest first. A group that is not empty stays.
void remove_tree(const fs::path& group) {
  for (const auto& inner : groups_in(group))
    remove_tree(inner);
  ::rmdir(group.c_str());
}

void collect(const fs::path& group, std::vector<pid_t>& found) {
  std::ifstream list(group / "cgroup.procs");
  // A process that this one cannot see is listed as 0.
  for (pid_t pid = 0; list >> pid;)
    if (pid > 0)
      found.push_back(pid);
  for (const auto& inner : groups_in(group))
    collect(inner, found);
}

os::unique_fd opened(const std::string& group) {
  return os::unique_fd(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// A group's own files tell what it is good for.
std::optional<std::string> group_validation_error(const std::string& group) {
  if (os::contents_of(group + "/cgroup.type") != "domain\n")
    return "groups below our own are of no use for processes";
  const auto controllers = os::contents_of(group + "/cgroup.controllers");
  if (!controllers.empty() && controllers != "\n")
    return "our own passes controllers on, which would change the limits";
  if (::access((group + "/cgroup.kill").c_str(), W_OK) != 0)
    return "this kernel cannot kill a group as a whole";
  return std::nullopt;
}

/// On our memory: nothing of a sanitizer may run there.
__attribute__((no_sanitize("address", "thread", "undefined"))) int leave(void*) {
  for (;;)
    ::syscall(SYS_exit_group, 0);
}

} // namespace

result<std::string> own_control_group(const std::string& mountinfo, const std::string& cgroup) {
  const auto own = group_in(cgroup);
  if (!own)
    return none("this kernel has no control groups of version 2");
  if (own->find("/..") != std::string::npos)
    return none("our own is out of this container's sight");
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);)
    if (const auto m = mount_in(line))
      if (const auto rest = below(m->root, *own))
        return m->point + *rest;
  return none("control groups of version 2 are not mounted, or without our own");
}

result<control_group> control_group::make() {
  if (!os::can_clone_into())
    return none("this system cannot start processes in one");
  auto parent = own_control_group(os::contents_of("/proc/self/mountinfo"),
                                  os::contents_of("/proc/self/cgroup"));
  return parent ? make_below(*parent) : tl::make_unexpected(parent.error());
}

result<control_group> control_group::make_below(const std::string& parent) {
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::string path = parent + "/" + name_begins + "XXXXXX";
    if (!::mkdtemp(path.data()))
      return none(fmt::format("{}: {}", parent, os::system_message(errno)));
    auto directory = opened(path);
    if (!directory || ::flock(directory.get(), LOCK_SH | LOCK_NB) != 0 ||
        ::access(path.c_str(), F_OK) != 0) {
      ::rmdir(path.c_str());
      continue;
    }
    ::fchmod(directory.get(), 0755); // for people who look around
    if (const auto why = group_validation_error(path)) {
      ::rmdir(path.c_str());
      return none(*why);
    }
    return control_group(std::move(path), std::move(directory));
  }
  return none("others remove what we make");
}

std::vector<pid_t> control_group::members() const {
  std::vector<pid_t> found;
  collect(path_, found);
  return found;
}

bool takes_processes(int group) {
  alignas(16) std::array<std::byte, 16u << 10> stack;
  const pid_t pid =
      os::clone_into(group, os::child_of::us, leave, stack.data(), stack.size(), nullptr);
  siginfo_t how{};
  return pid > 0 && ::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | __WALL) == 0 &&
         how.si_code == CLD_EXITED;
}

os::unique_fd control_group::make_inner() const {
  std::string path = path_ + "/XXXXXX";
  return ::mkdtemp(path.data()) ? opened(path) : os::unique_fd();
}

void control_group::kill() const {
  const os::unique_fd order(::openat(directory_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  (void)!::write(order.get(), "1", 1);
}

void control_group::end_abandoned() const {
  const fs::path own = path_;
  std::size_t seen = 0;
  for (const auto& path : groups_in(own.parent_path())) {
    if (path == own || path.filename().string().rfind(name_begins, 0) != 0)
      continue;
    if (++seen > limits::abandoned_groups_looked_at)
      return;
    auto held = opened(path);
    struct stat found {};
    // The launcher, its supervisor and its orphan reaper hold the lock. Without it, what still runs
    // there was left by all of them.
    if (!held || ::fstat(held.get(), &found) != 0 || found.st_uid != ::geteuid() ||
        ::flock(held.get(), LOCK_EX | LOCK_NB) != 0)
      continue;
    const control_group abandoned(path, std::move(held));
    for (int round = 0; round < attempts && !abandoned.remove(); ++round) {
      abandoned.kill();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void control_group::tidy() const {
  for (const auto& inner : groups_in(path_))
    remove_tree(inner);
}

bool control_group::remove() const {
  remove_tree(path_);
  return ::access(path_.c_str(), F_OK) != 0;
}

} // namespace troupe::launch
