#include "launch/shell/local_masters.hpp"

#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// Processes that can hold a master, by the names they give themselves.
constexpr std::array<std::string_view, 2> names_of_masters{"actor-master", "troupe-node"};
/// The state of a listening socket in the kernel's tables.
constexpr auto listening = "0A";

template<class Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number n{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (wrong != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return n;
}

/// The kernel prints an address as words of this machine's byte order.
std::optional<std::string> address_in(std::string_view hex) {
  std::array<std::uint32_t, 4> words{};
  if (hex.size() != 8 && hex.size() != 32)
    return std::nullopt;
  for (std::size_t i = 0; i < hex.size() / 8; ++i) {
    const auto word = number_in<std::uint32_t>(hex.substr(8 * i, 8), 16);
    if (!word)
      return std::nullopt;
    words[i] = *word;
  }
  const bool anywhere = std::all_of(words.begin(), words.end(), [](auto w) { return w == 0; });
  const int family = hex.size() == 8 ? AF_INET : AF_INET6;
  if (anywhere)
    return family == AF_INET ? "127.0.0.1" : "::1";
  char text[INET6_ADDRSTRLEN] = {};
  if (!::inet_ntop(family, words.data(), text, sizeof text))
    return std::nullopt;
  return text;
}

/// Of this user, and with one of the names. Processes end while they are looked at.
bool may_hold_a_master(const fs::path& process) {
  struct stat seen {};
  if (::stat(process.c_str(), &seen) != 0 || seen.st_uid != ::geteuid())
    return false;
  auto name = os::contents_of(process / "comm");
  name.erase(std::min(name.find('\n'), name.size()));
  return std::find(names_of_masters.begin(), names_of_masters.end(), name) !=
         names_of_masters.end();
}

void add_sockets_of(const fs::path& process, std::set<std::uint64_t>& inodes) {
  constexpr std::string_view prefix = "socket:[";
  std::error_code gone;
  for (const auto& entry : os::entries_of(process / "fd")) {
    const auto target = fs::read_symlink(entry.path(), gone).string();
    if (gone || target.compare(0, prefix.size(), prefix) != 0)
      continue;
    const auto digits =
        std::string_view(target).substr(prefix.size(), target.size() - prefix.size() - 1);
    if (const auto inode = number_in<std::uint64_t>(digits, 10))
      inodes.insert(*inode);
  }
}

} // namespace

std::vector<listening_socket> listening_sockets(const std::string& table) {
  std::vector<listening_socket> found;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, skipped, inode;
    words >> slot >> local >> remote >> state;
    for (int i = 0; i < 5; ++i)
      words >> skipped; // queues, timer, retransmits, user, timeout
    words >> inode;
    const auto colon = local.find(':');
    const auto number = number_in<std::uint64_t>(inode, 10);
    if (!words || state != listening || colon == std::string::npos || !number)
      continue;
    const auto host = address_in(std::string_view(local).substr(0, colon));
    const auto port = number_in<std::uint16_t>(std::string_view(local).substr(colon + 1), 16);
    if (host && port)
      found.push_back({{*host, *port}, *number});
  }
  return found;
}

std::vector<ports::endpoint> listening_places(const std::string& table,
                                              const std::set<std::uint64_t>& inodes) {
  std::vector<ports::endpoint> found;
  for (const auto& socket : listening_sockets(table))
    if (inodes.count(socket.inode) != 0)
      found.push_back(socket.where);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<ports::endpoint> possible_masters(const std::string& proc) {
  std::set<std::uint64_t> inodes;
  for (const auto& entry : os::entries_of(proc))
    if (may_hold_a_master(entry.path()))
      add_sockets_of(entry.path(), inodes);
  const auto tables = os::contents_of(fs::path(proc) / "self/net/tcp") +
                      os::contents_of(fs::path(proc) / "self/net/tcp6");
  return listening_places(tables, inodes);
}

} // namespace troupe::launch
