#pragma once

#include "actors/master/membership/membership_core.hpp"
#include "actors/master/sessions/session/session.hpp"

#include <functional>
#include <utility>

/// Who is connected, and the way to them: the other roles name nodes, membership knows their
/// sessions. State: comes back from the nodes' hellos.
namespace troupe::actors::membership {

/// A peer of role node said hello on this session.
struct arrival {
  session_id id;
  session::handle where;
  messages::msg<messages::Hello> hello;
};
/// A session's link is gone.
struct link_lost {
  session_id id;
  ports::link_ending how;
};
/// The node behind a session said goodbye.
struct departure {
  session_id id;
  std::string reason;
};
/// One message for several nodes; those that are away miss it.
struct dispatch {
  std::vector<node_name> nodes;
  messages::any_msg message;
};
struct expel {
  node_name node;
  std::string reason;
  bool may_rejoin = false;
};
/// The job is over: who leaves now does what it should.
struct job_over {};
struct list_present {};
struct present {
  std::vector<std::pair<node_name, session::handle>> nodes;
};

using handle = sup::protocol<sup::tell<arrival>, sup::tell<link_lost>, sup::tell<departure>,
                             sup::tell<dispatch>, sup::tell<expel>, sup::tell<job_over>,
                             sup::ask<list_present>::yields<present>>;

/// `on_everyone_left` is called when the job is over and the last node has left.
handle start(sup::context& ctx, membership_options options, const master_addresses& master,
             std::function<void()> on_everyone_left);

} // namespace troupe::actors::membership

TROUPE_LOCAL_MESSAGE(troupe::actors::membership::arrival)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::link_lost)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::departure)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::dispatch)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::expel)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::job_over)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::list_present)
TROUPE_LOCAL_MESSAGE(troupe::actors::membership::present)
