#pragma once

#include "messages/msg.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace troupe::os {

/// Both ends of a channel between processes of this machine; packets stay whole and in order. Two
/// empty ones, with errno, when the system has no more.
std::pair<unique_fd, unique_fd> packet_pair();

/// Sends a message as one packet, with a file descriptor if `file` is not negative. Waits for room
/// unless told not to; false, with errno, if there is none, or if the other end is closed. Takes no
/// memory.
bool send_packet(int socket, const messages::any_msg& m, int file = -1, bool wait = true);

struct received_packet {
  /// Else why the bytes of this packet are no message; the packets after it are not touched.
  result<messages::any_msg> what;
  unique_fd file;
};

/// The next one, of at most `room_bytes`, for which there is room at `room`; nothing at the end, or
/// with errno EAGAIN if none is there and it should not wait. An end leaves errno 0.
std::optional<received_packet> receive_packet(int socket, bool wait, unsigned char* room,
                                              std::size_t room_bytes);

} // namespace troupe::os
