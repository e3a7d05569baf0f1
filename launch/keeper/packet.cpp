#include "launch/keeper/packet.hpp"

#include "launch/keeper/limits.hpp"

#include <array>

namespace troupe::launch {

std::optional<received_packet> receive_packet(int socket, bool wait) {
  std::array<unsigned char, limits::packet_max> room;
  return os::receive_packet(socket, wait, room.data(), room.size());
}

std::string fit_for_packet(const std::string& text) {
  return text.substr(0, limits::packet_text_max);
}

} // namespace troupe::launch
