#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct membership_options {
  std::string job;
  /// How long a node whose link is gone may stay away before it is lost.
  duration reconnect_grace = limits::reconnect_grace;
  duration beat_every = limits::beat_every;
};

/// Who is connected. A node is *present* (it has a link), *away* (its link is gone, it may come
/// back) or unknown. A name belongs to its newest incarnation; older ones are fenced and stay
/// refused.
class membership_core {
 public:
  /// Answer to a hello on this session, which then carries the node's messages.
  struct welcome {
    session_id session;
    messages::msg<messages::Welcome> message;
  };
  struct refuse {
    session_id session;
    messages::msg<messages::Refused> message;
  };
  /// The session's node has another, newer link: end this one.
  struct fence {
    session_id session;
    std::string reason;
  };
  /// NodePresent, NodeAway or NodeLost, for rendezvous.
  struct announce {
    messages::any_msg message;
  };
  /// The job is over and the last node has left.
  struct everyone_left {};
  struct note {
    log::event event;
  };
  using effect = std::variant<welcome, refuse, fence, announce, everyone_left, note>;
  using effects = std::vector<effect>;

  membership_core(membership_options options, messages::author author);

  effects hello(instant now, session_id session, const messages::msg<messages::Hello>& m);
  effects closed(instant now, session_id session, const std::string& reason);
  /// The node said it will not come back: lost without a grace period.
  effects departed(instant now, session_id session, const std::string& reason);
  /// The master gives a node up. With `may_rejoin` a new incarnation of it is welcome.
  effects expel(instant now, const node_name& node, const std::string& reason, bool may_rejoin);
  effects tick(instant now);
  /// Nodes that leave from now on do what they should.
  effects job_over();

  /// When tick() has something to do.
  std::optional<instant> next_wakeup() const;

  /// The session that carries messages to a node; nothing while it is away.
  std::optional<session_id> session_of(const node_name& node) const;
  /// Everyone who has a link, by name.
  std::vector<std::pair<node_name, session_id>> present() const;
  std::string in_words() const;

 private:
  struct member {
    incarnation which;
    std::optional<session_id> session;
    instant away_since{};
  };

  struct fenced_node {
    node_name node;
    incarnation which;
    std::string reason;
    bool may_rejoin;
  };
  struct refusal {
    std::string reason;
    bool retry = false;
  };

  std::optional<refusal> objection(messages::Hello::Reader& hello) const;
  void lose(effects& out, const node_name& node, const std::string& reason, bool may_rejoin);
  void welcome_to(effects& out, session_id session);
  void refuse_session(effects& out, session_id session, const node_name& node, const refusal& why);
  void announce_present(effects& out, messages::Hello::Reader& hello);

  membership_options options_;
  messages::author author_;
  bool job_over_ = false;
  std::map<node_name, member> members_;
  std::size_t away_ = 0; ///< of them; while it is 0, what is asked at every hello costs nothing
  /// Most recent last; bounded by limits::nodes_max.
  std::deque<fenced_node> fenced_;
};

} // namespace troupe::actors
