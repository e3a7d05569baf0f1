#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/ports/bulk_links.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// What both ends of a bulk link say first (runtime/ports/bulk_links.hpp), wherever its bytes go.
namespace troupe::link {

/// With this a node asks another one of its job for a link. It stands for the node and for no
/// generation: what is said on the link carries its own.
messages::msg<messages::Hello> bulk_hello(messages::author& as, const std::string& job,
                                          const std::string& node, ports::bulk_purpose purpose);

/// How it is where a peer comes in.
struct bulk_place {
  std::string job;
  bool is_served = false; ///< for what the peer asks
  std::size_t peers = 0, peers_max = 0;
};

/// Why the peer gets no link, in one line for people. A role or a job that is wrong comes before
/// what may change at this node: of those two the peer should not try again.
std::optional<std::string> bulk_refusal(messages::Hello::Reader hello, const bulk_place& here);

/// The peer hears why, and the link ends.
void turn_away(const ports::peer& p, const std::string& by, const std::string& why);

} // namespace troupe::link
