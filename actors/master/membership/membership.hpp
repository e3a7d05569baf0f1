#pragma once

#include "actors/master/job/generation/member/member.hpp"
#include "actors/master/membership/membership_core.hpp"
#include "actors/master/sessions/session/session.hpp"

#include <functional>
#include <utility>

/// Which nodes are connected, and the way to them: the other roles name nodes, membership knows
/// their sessions. State: comes back from the nodes' hellos.
namespace troupe::actors::membership {

/// A peer of role node said hello on this session.
struct arrival {
  session_id id;
  session::handle where;
  messages::msg<messages::Hello> hello;
};
/// One message for several nodes; those that are away miss it.
struct dispatch {
  std::vector<node_name> nodes;
  messages::any_msg message;
};
/// This member stands for the node in the generation that is up; it takes the place of an older
/// one. With `catch_up` it hears at once what the node has said of itself, if that is there. Else
/// the node was here when the generation was proposed, and the member hears at once if this life of
/// it is not any more.
struct attend {
  node_name node;
  incarnation which;
  sup::address<member::handle> where;
  bool catch_up = false;
};
/// Which nodes the job has, for a report to a person.
struct present {
  struct linked {
    node_name node;
    session_id id;
    session::handle where;
  };
  std::vector<linked> nodes;
  /// Nodes without a link that may come back, each with the reason of the loss.
  std::vector<std::pair<node_name, std::string>> away;
};

using handle = sup::protocol<
    // From sessions.
    sup::tell<arrival>, sup::tell<messages::msg<messages::LinkLost>>,
    sup::tell<messages::msg<messages::NodeDeparted>>,
    // From the planner, and from the generation that is up.
    sup::tell<dispatch>, sup::tell<attend>, sup::tell<messages::msg<messages::Evict>>,
    sup::tell<messages::msg<messages::JobOver>>,
    // From the gateway.
    sup::ask<messages::msg<messages::ListNodes>>::yields<present>>;

messages::msg<messages::Evict> evict(const std::string& sender, const node_name& node,
                                     const std::string& reason, bool may_rejoin,
                                     const std::string& in_short = {});
messages::msg<messages::LinkLost> link_lost(const std::string& sender, session_id session,
                                            const ports::link_ending& how);

struct listeners {
  /// The job is over, and the last node has left.
  std::function<void()> on_everyone_left;
  /// What a node says of the job is recorded: this tree is to end for one that begins with it.
  std::function<void(const messages::job_words&)> on_job_options;
};

handle start(sup::context& ctx, membership_options options, const master_addresses& master,
             listeners tell);

} // namespace troupe::actors::membership

TROUPE_LOCAL_MESSAGE(troupe::actors::membership::arrival)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::dispatch)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::attend)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::present)
