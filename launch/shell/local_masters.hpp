#pragma once

#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// Where the masters of this user's jobs on this machine may listen. A job on one node picks a port
/// that no person knows; the kernel does: each process that can hold a master is looked at, and its
/// listening sockets are looked up by their inodes.
namespace troupe::launch {

/// One that listens, in the text of /proc/net/tcp or tcp6; one that listens everywhere is dialled
/// at loopback.
struct listening_socket {
  ports::endpoint where;
  std::uint64_t inode = 0;
};
std::vector<listening_socket> listening_sockets(const std::string& table);

/// The listening TCP sockets of `table` (the text of /proc/net/tcp or tcp6) that are among
/// `inodes`, as addresses to dial: one that listens everywhere is dialled at loopback.
std::vector<ports::endpoint> listening_places(const std::string& table,
                                              const std::set<std::uint64_t>& inodes);

/// Of this user's processes. Also has places of other things that a node's process listens for: a
/// hello tells. `proc` is where the kernel shows processes.
std::vector<ports::endpoint> possible_masters(const std::string& proc = "/proc");

} // namespace troupe::launch
