#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::os {

/// A TCP connection whose peer does not acknowledge what was sent.
struct stuck_socket {
  std::uint64_t inode = 0;
  std::string peer;                 ///< "10.0.0.3:29500", "[2001:db8::3]:29500"
  std::uint64_t unacknowledged = 0; ///< bytes
  std::uint64_t retransmissions = 0;
  friend bool operator==(const stuck_socket& a, const stuck_socket& b) {
    return a.inode == b.inode && a.peer == b.peer && a.unacknowledged == b.unacknowledged &&
           a.retransmissions == b.retransmissions;
  }
};

/// Those of a table like /proc/PID/net/tcp or tcp6 that have sent again, and wait for an answer
/// still: one that has only just sent waits as well, and is as it should be. Lines that are none
/// are passed over.
std::vector<stuck_socket> stuck_sockets(std::string_view table);

} // namespace troupe::os
