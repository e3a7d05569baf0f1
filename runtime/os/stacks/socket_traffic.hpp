#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <sys/types.h>

namespace troupe::os {

/// What TCP connections have carried.
///
/// A rank that stores a checkpoint over the network stands in one call for seconds, and needs no
/// processor: only its connections tell it from one that hangs. /proc/PID/io does not count them,
/// since libraries use send() and recv(). The kernel's sock_diag does; it is asked once, as each
/// answer has all connections of the network namespace.
class socket_traffic {
 public:
  /// Bytes that were received, and bytes of which the peer has said that it has them, of those of
  /// a process's sockets (inodes) that are open. 0 where the kernel does not tell: it was built
  /// without sock_diag, or the process is in another network namespace than this one.
  std::uint64_t of(pid_t pid, const std::set<std::uint64_t>& sockets);

 private:
  std::optional<std::map<std::uint64_t, std::uint64_t>> by_inode_;
};

} // namespace troupe::os
