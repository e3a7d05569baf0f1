#include "runtime/os/stacks/socket_table_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

namespace troupe::os {

namespace {

std::optional<std::uint64_t> value_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, base);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

std::string_view next_word(std::string_view& text) {
  const auto begin = std::min(text.find_first_not_of(" \t"), text.size());
  const auto end = std::min(text.find_first_of(" \t", begin), text.size());
  const auto found = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return found;
}

/// The kernel prints each 32 bits of an address as one number of this machine; both kinds of
/// machine that this runs on have the lowest byte first.
std::optional<std::string> host_of(std::string_view text) {
  std::array<unsigned, 16> bytes{};
  if (text.size() != 8 && text.size() != 32)
    return std::nullopt;
  for (std::size_t group = 0; group < text.size() / 8; ++group) {
    const auto value = value_of(text.substr(group * 8, 8), 16);
    if (!value)
      return std::nullopt;
    for (std::size_t n = 0; n < 4; ++n)
      bytes[group * 4 + n] = static_cast<unsigned>(*value >> (8 * n) & 0xff);
  }
  const bool is_mapped =
      text.size() == 32 && bytes[10] == 0xff && bytes[11] == 0xff &&
      std::all_of(bytes.begin(), bytes.begin() + 10, [](unsigned b) { return b == 0; });
  if (text.size() == 8 || is_mapped) {
    const auto* b = bytes.data() + (is_mapped ? 12 : 0);
    return fmt::format("{}.{}.{}.{}", b[0], b[1], b[2], b[3]);
  }
  std::string host = "[";
  for (std::size_t n = 0; n < 16; n += 2)
    host += fmt::format("{}{:x}", n == 0 ? "" : ":", bytes[n] << 8 | bytes[n + 1]);
  return host + "]";
}

std::optional<std::pair<std::string_view, std::string_view>> halves(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos)
    return std::nullopt;
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

std::optional<stuck_socket> parse(std::string_view line) {
  (void)next_word(line); // its place in the table
  (void)next_word(line); // our address
  const auto peer = halves(next_word(line));
  (void)next_word(line); // state
  const auto queues = halves(next_word(line)), timer = halves(next_word(line));
  const auto retransmissions = value_of(next_word(line), 16);
  (void)next_word(line); // user
  (void)next_word(line); // probes
  const auto inode = value_of(next_word(line), 10);
  if (!peer || !queues || !timer || !retransmissions || !inode)
    return std::nullopt;
  const auto host = host_of(peer->first);
  const auto port = value_of(peer->second, 16), sent = value_of(queues->first, 16),
             armed = value_of(timer->first, 16);
  constexpr std::uint64_t retransmission_timer = 1;
  if (!host || !port || !sent || !armed || *armed != retransmission_timer || *sent == 0 ||
      *retransmissions == 0)
    return std::nullopt;
  return stuck_socket{*inode, fmt::format("{}:{}", *host, *port), *sent, *retransmissions};
}

} // namespace

std::vector<stuck_socket> stuck_sockets(std::string_view table) {
  std::vector<stuck_socket> found;
  while (!table.empty()) {
    const auto end = std::min(table.find('\n'), table.size());
    if (auto socket = parse(table.substr(0, end)))
      found.push_back(std::move(*socket));
    table.remove_prefix(std::min(end + 1, table.size()));
  }
  return found;
}

} // namespace troupe::os
