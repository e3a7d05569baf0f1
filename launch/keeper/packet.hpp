#pragma once

#include "messages/msg.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <optional>
#include <string>
#include <utility>

namespace troupe::launch {

/// Both ends of a channel between keeper, supervisor and store; packets stay whole and in order.
/// Two empty ones, with errno, when the system has no more.
std::pair<os::unique_fd, os::unique_fd> packet_pair();

/// Sends a message as one packet, with a file descriptor if `file` is not negative. Waits for room
/// unless told not to; false if there is none, or if the other end is closed. Takes no memory.
bool send_packet(int socket, const messages::any_msg& m, int file = -1, bool wait = true);

struct received_packet {
  /// Else why the bytes of this packet are no message; the packets after it are not touched.
  result<messages::any_msg> what;
  os::unique_fd file;
};

/// The next one; nothing at the end, or if none is there and it should not wait.
std::optional<received_packet> receive_packet(int socket, bool wait);

/// As much of a text for the user as a packet has room for.
std::string fit_for_packet(const std::string& text);

} // namespace troupe::launch
