#pragma once

#include "runtime/os/process/packet.hpp"

#include <optional>
#include <string>

/// The packets between keeper, supervisor and store: at most limits::packet_max bytes each.
namespace troupe::launch {

using os::packet_pair;
using os::received_packet;
using os::send_packet;

/// As os::receive_packet.
std::optional<received_packet> receive_packet(int socket, bool wait);

/// As much of a text for the user as a packet has room for.
std::string fit_for_packet(const std::string& text);

} // namespace troupe::launch
