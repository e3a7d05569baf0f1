#include "runtime/link/bulk_peers.hpp"

#include <fmt/format.h>

namespace troupe::link {

using messages::Hello;

namespace {

/// The purpose comes from the peer, whose Troupe may know more of them.
std::string not_served(ports::bulk_purpose what) {
  switch (what) {
  case ports::bulk_purpose::COPIES:
    return "this node takes no copies of other nodes' images";
  case ports::bulk_purpose::PROBE:
    return "this node takes no part in checks of the network";
  case ports::bulk_purpose::NEIGHBOURS:
    return "this node is asked for no master";
  }
  return fmt::format("this node does not know purpose {} of a bulk link: is the other node's "
                     "Troupe a later version?",
                     static_cast<unsigned>(what));
}

} // namespace

messages::msg<Hello> bulk_hello(messages::author& as, const std::string& job,
                                const std::string& node, ports::bulk_purpose purpose) {
  return as.write<Hello>({}, [&](Hello::Builder b) {
    b.setJob(job);
    b.setNode(node);
    b.setRole(Hello::Role::PEER);
    b.setPurpose(purpose);
  });
}

std::optional<std::string> bulk_refusal(Hello::Reader hello, const bulk_place& here) {
  if (hello.getRole() != Hello::Role::PEER)
    return "here are bulk links between nodes: only peers may dial, all others dial the master";
  if (here.job != hello.getJob().cStr())
    return fmt::format("here are bulk links of job \"{}\", not of job \"{}\"", here.job,
                       hello.getJob().cStr());
  if (!here.is_served)
    return not_served(hello.getPurpose());
  if (here.peers >= here.peers_max)
    return fmt::format("{} bulk links of other nodes are here already", here.peers);
  return std::nullopt;
}

void turn_away(const ports::peer& p, const std::string& by, const std::string& why) {
  const auto refusal = messages::author(by).write<messages::Refused>(
      {}, [&why](messages::Refused::Builder b) { b.setReason(why); });
  (void)p.link->send(refusal.any());
  p.link->close(why);
}

} // namespace troupe::link
