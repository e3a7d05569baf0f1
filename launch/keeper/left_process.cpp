#include "launch/keeper/left_process.hpp"

#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// The kernel keeps 15 characters of a name.
constexpr auto shared_memory_manager = "torch_shm_manag";

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// What any process may have open, and no process keeps from another.
bool is_shared_device(const std::string& path) {
  static const std::array<const char*, 6> alone{"/dev/null",   "/dev/zero",    "/dev/full",
                                                "/dev/random", "/dev/urandom", "/dev/console"};
  static const std::array<const char*, 4> prefixes{"/dev/tty", "/dev/pt", "/dev/shm/",
                                                   "/dev/mqueue/"};
  return std::any_of(alone.begin(), alone.end(), [&path](const char* d) { return path == d; }) ||
         std::any_of(prefixes.begin(), prefixes.end(),
                     [&path](const char* p) { return starts_with(path, p); });
}

/// Where the system begins to pick ports for programs that want any.
long first_picked_port() {
  const auto range = os::contents_of("/proc/sys/net/ipv4/ip_local_port_range");
  const long first = std::strtol(range.c_str(), nullptr, 10);
  return first > 0 ? first : 65'536;
}

/// Lines of /proc/net/tcp: number, own address and port in hexadecimal, the peer's, state, four
/// columns, the socket's inode. Listening sockets (state 0A) come first.
bool listens(const fs::path& table, const std::set<std::string>& sockets, long below) {
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string number, own, peer, state, skipped, inode;
    words >> number >> own >> peer >> state;
    for (int i = 0; i < 5; ++i)
      words >> skipped;
    words >> inode;
    if (state != "0A")
      return false;
    const auto colon = own.find(':');
    if (colon != std::string::npos && sockets.count(inode) != 0 &&
        std::strtol(own.c_str() + colon + 1, nullptr, 16) < below)
      return true;
  }
  return false;
}

bool holds_resource(const fs::path& process) {
  static const std::string socket = "socket:[";
  std::set<std::string> sockets;
  for (const auto& entry : os::entries_of(process / "fd")) {
    std::error_code gone;
    const auto target = fs::read_symlink(entry.path(), gone).string();
    if (starts_with(target, "/dev/") && !is_shared_device(target))
      return true;
    if (starts_with(target, socket))
      sockets.insert(target.substr(socket.size(), target.size() - socket.size() - 1));
  }
  const long below = first_picked_port();
  return !sockets.empty() && (listens(process / "net/tcp", sockets, below) ||
                              listens(process / "net/tcp6", sockets, below));
}

} // namespace

/// /proc/PID/stat: pid, name in brackets (which may hold brackets), state, parent, group.
left_process look_at(pid_t pid) {
  left_process found;
  found.pid = pid;
  const fs::path process = fmt::format("/proc/{}", pid);
  const auto stat = os::contents_of(process / "stat");
  const auto begin = stat.find('(');
  const auto end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return found;
  found.name = stat.substr(begin + 1, end - begin - 1);
  std::istringstream words(stat.substr(end + 1));
  std::string state;
  pid_t parent = 0;
  words >> state >> parent >> found.group;
  found.unlinks_memory = found.name == shared_memory_manager;
  found.holds_resource = found.unlinks_memory && holds_resource(process);
  return found;
}

} // namespace troupe::launch
