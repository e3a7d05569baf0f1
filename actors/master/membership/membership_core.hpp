#pragma once

#include "actors/master/membership/flapping.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct membership_options {
  std::string job;
  /// How long a node whose connection was closed may take to be back.
  duration return_within = limits::return_within;
  /// The same when this master was away itself and the node may have waited for it.
  duration return_to_sleeper_within = limits::return_to_sleeper_within;
  /// The same when nothing was heard of anybody, from when somebody is heard again, and
  duration return_to_deaf_within = limits::return_to_deaf_within;
  /// while nobody is.
  duration deaf_at_most = limits::deaf_at_most;
  duration beat_every = limits::beat_every;
  /// The size of the job, which nodes must not contradict; 0: any.
  std::uint32_t nodes_min = 0;
  std::uint32_t nodes_max = 0;
};

/// Who is connected. A node is *present* (it has a link), *away* (its connection was closed, it may
/// come back) or unknown. Membership is a lease that signs of life renew: the link judges silence,
/// and a node that was silent is lost at once, but where all were silent together:
/// then this master may be cut off, and they have not been away once they are back. A name belongs
/// to its newest incarnation; older ones are fenced and stay refused.
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
  /// The job is over and the last node has left. Said once.
  struct everyone_left {};
  struct note {
    log::event event;
  };
  using effect = std::variant<welcome, refuse, fence, announce, everyone_left, note>;
  using effects = std::vector<effect>;

  /// `began`: when this master did.
  membership_core(membership_options options, messages::author author, instant began);

  effects hello(instant now, session_id session, const messages::msg<messages::Hello>& m);
  effects closed(instant now, session_id session, const ports::link_ending& how);
  /// The node said it will not come back: lost without a grace period.
  effects departed(instant now, session_id session, const std::string& reason);
  /// The master gives a node up. With `may_rejoin` a new incarnation of it is welcome.
  effects expel(instant now, const node_name& node, const std::string& reason, bool may_rejoin);
  effects tick(instant now);
  /// Nodes that leave from now on do what they should.
  effects job_over(instant now);

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
    // While it is away:
    instant since{};
    instant lost_at{};
    std::string because;
    bool unheard = false; ///< as all others were
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
    duration after{}; ///< with `retry`: before that it is of no use
  };

  std::optional<refusal> objection(instant now, messages::Hello::Reader& hello) const;
  bool anybody_present() const;
  void set_due(const node_name& node, member& who, instant lost_at);
  /// Puts the unheard off while nobody is there; with somebody there, their time runs.
  void put_off_unheard(instant now);
  duration may_take(ports::link_end how) const;
  void lose(effects& out, instant now, const node_name& node, const std::string& reason,
            bool may_rejoin);
  void forget(effects& out, const node_name& node, const std::string& reason, bool may_rejoin);
  void welcome_to(effects& out, session_id session);
  void refuse_session(effects& out, session_id session, const node_name& node, const refusal& why);
  void announce_present(effects& out, messages::Hello::Reader& hello);
  void tell_if_everyone_left(effects& out, instant now);

  membership_options options_;
  messages::author author_;
  /// When all who knew the master before this one had time to come; until then who is here does not
  /// tell who there is.
  instant all_known_at_;
  bool job_over_ = false;
  bool told_that_everyone_left_ = false;
  std::map<node_name, member> members_;
  /// Those who are away, by when they are lost.
  std::set<std::pair<instant, node_name>> due_;
  flapping flapping_;
  /// Most recent last; bounded by limits::nodes_max.
  std::deque<fenced_node> fenced_;
};

} // namespace troupe::actors
