#pragma once

#include "actors/limits.hpp"
#include "actors/master/membership/flapping.hpp"
#include "actors/master/membership/job_command.hpp"
#include "actors/master/membership/job_options.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/reminder.hpp"
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
  /// The same when nothing was heard of any node: counted from when one is heard again,
  duration return_to_isolated_within = limits::return_to_isolated_within;
  /// and the most while none is.
  duration isolated_at_most = limits::isolated_at_most;
  duration beat_every = limits::beat_every;
  /// The size of the job, which nodes must not contradict; 0: any.
  std::uint32_t nodes_min = 0;
  std::uint32_t nodes_max = 0;
  /// What the job runs, which nodes must not contradict; without a text: what the first node says.
  command_identity command;
  job_options_known options;
  /// How long a node's workers may take to end, where the node does not say so.
  duration stop_within = limits::stop_workers_within;
  /// An earlier master of the job may have nodes that still dial for it.
  bool has_predecessor = false;
  /// Nodes may call the job otherwise: the master has made their pods itself.
  bool any_name = false;
};

/// Which nodes are connected. A node is *present* (it has a link), *away* (its connection was
/// closed, it may come back) or unknown. Membership is a lease that signs of life renew: the link
/// judges silence, and a node that was silent is lost at once, but where all were silent together:
/// then this master may be cut off, and they have not been away once they are back. A name belongs
/// to its newest incarnation; older ones are fenced and stay refused. A newcomer that takes the
/// name of a node is let in once that node has ended its workers, or has not answered for long
/// enough.
class membership_core {
 public:
  /// Answer to a hello on this session, which then carries the node's messages.
  struct welcome {
    session_id session;
    messages::msg<messages::Welcome> message;
  };
  /// The link ends after it.
  struct refuse {
    session_id session;
    messages::msg<messages::Refused> message;
  };
  /// The session's node has another, newer link: end this one.
  struct fence {
    session_id session;
    std::string reason;
  };
  /// The session's node is to end its workers and then to say Goodbye; the link stays for that.
  struct send_off {
    session_id session;
    messages::msg<messages::Refused> message;
  };
  /// NodePresent, NodeAway or NodeLost, for the planner, the member and the catalog.
  struct announce {
    messages::any_msg message;
    /// NodeLost: the node may still run workers. Its member hears of it by `let_go`, so that the
    /// generation does not end before.
    bool may_run = false;
  };
  /// Nothing more is waited for of a node whose loss was announced with `may_run`.
  struct let_go {
    messages::msg<messages::NodeLost> message;
  };
  /// The master is to begin anew with what `node` says of the job, once that is recorded. Nothing
  /// has been let in, and nothing is answered before.
  struct take_options {
    node_name node;
    messages::job_words words;
    messages::msg<messages::JobOptionsTaken> record;
  };
  /// The job is over, and the last node has left or has had its time. Said once.
  struct everyone_left {};
  struct note {
    log::event event;
  };
  using effect = std::variant<welcome, refuse, fence, send_off, announce, let_go, take_options,
                              everyone_left, note>;
  using effects = std::vector<effect>;

  /// `began`: when this master did.
  membership_core(membership_options options, messages::author author, instant began);

  effects hello(instant now, session_id session, const messages::msg<messages::Hello>& m);
  /// How it ended decides what is believed of the node: see ADR 11.
  effects closed(instant now, session_id session, const ports::link_ending& how);
  /// The node said it will not come back: lost without a grace period.
  effects departed(instant now, session_id session, const std::string& reason);
  /// The master gives a node up. With `may_rejoin` a new incarnation of it is welcome.
  /// `in_short`: the reason, for a log that has the whole of it already.
  effects evict(instant now, const node_name& node, const std::string& reason, bool may_rejoin,
                const std::string& in_short = {});
  effects tick(instant now);
  /// The verdict is out: from now on a departing node is expected and not a loss. Nodes may take
  /// the time that their workers have to end, and then that for their last saves.
  effects job_over(instant now);

  /// When tick() has something to do.
  std::optional<instant> next_wakeup() const;

  /// The session that carries messages to a node; nothing while it is away.
  std::optional<session_id> session_of(const node_name& node) const;
  /// What a member is told whose node, in this life of it, was lost before the member began; 0: in
  /// any life.
  std::optional<messages::msg<messages::NodeLost>> gone_already(const node_name& node,
                                                                incarnation which);
  /// Whether a newcomer waits for the end of the node whose name it has.
  bool is_taken_over(const node_name& node) const { return leaving_.count(node) != 0; }
  /// Every node that has a link, by name.
  std::vector<std::pair<node_name, session_id>> present() const;
  /// Every node without a link that may come back, and why it has none, by name.
  std::vector<std::pair<node_name, std::string>> away() const;
  std::string in_words() const;

 private:
  struct member {
    incarnation which;
    std::optional<session_id> session;
    command_identity command;
    duration stop_within{};
    // While it is away:
    instant since{};
    instant lost_at{};
    /// Why the link ended: shown while the node is away, and the reason of its loss after that.
    std::string because;
    bool unheard = false; ///< as all others were
  };

  /// A node whose name a newcomer has taken.
  struct leaver {
    incarnation which;
    std::optional<session_id> session; ///< none: it is away
    duration stop_within{};
    instant until{};
    session_id newcomer;
    std::optional<messages::msg<messages::Hello>> hello; ///< the newcomer's, while that has a link
  };

  /// An incarnation that was lost, left or was replaced. Only the pair is refused, never the name.
  struct fenced_node {
    node_name node;
    incarnation which;
    std::string reason;
    bool may_rejoin;
  };
  struct refusal {
    std::string reason;
    /// What will pass by itself. Else the launcher ends, with the reason as what its user reads.
    bool retry = false;
    duration after{}; ///< with `retry`: before that it is of no use
  };

  // A newcomer takes a node's name (membership_core_succession.cpp).
  /// A name that is known has come under another incarnation.
  void take_over(effects& out, instant now, session_id newcomer,
                 const messages::msg<messages::Hello>& m);
  bool joins_succession(effects& out, instant now, session_id session,
                        const messages::msg<messages::Hello>& m);
  bool ends_succession(effects& out, instant now, session_id session,
                       const std::optional<std::string>& silent);
  void send_off_leaver(effects& out, instant now, const node_name& node, leaver& who,
                       session_id session);
  void succeed(effects& out, instant now, const node_name& node);
  /// Ends the wait for nodes that have not said that their workers are gone.
  void succeed_the_late(effects& out, instant now);
  messages::msg<messages::Refused> refusal_message(const refusal& why);
  messages::msg<messages::NodeLost> lost_message(const node_name& node, const std::string& reason);

  /// For a node that is new, that is back, or that has waited for its name.
  void let_in(effects& out, instant now, session_id session,
              const messages::msg<messages::Hello>& m);
  std::optional<refusal> validation_error(instant now, messages::Hello::Reader& hello) const;
  /// Whether this master hears any node: if not, it may be the one that is cut off.
  bool anybody_present() const;
  void set_due(const node_name& node, member& who, instant lost_at);
  /// While no node is present, puts off the loss of those that are not heard. Once one is present,
  /// their time runs.
  void put_off_unheard(instant now);
  duration may_take(ports::link_end how) const;
  void lose(effects& out, instant now, const node_name& node, const std::string& reason,
            bool may_rejoin);
  void forget(effects& out, const node_name& node, const std::string& reason, bool may_rejoin,
              bool may_run = false);
  /// What would pass by itself, and so is refused for a while only.
  std::optional<refusal> newcomer_validation_error(instant now,
                                                   messages::Hello::Reader& hello) const;
  std::optional<refusal> options_validation_error(instant now,
                                                  messages::Hello::Reader& hello) const;
  instant options_kept_until() const;
  bool knows_no_node() const;
  /// Whether this node goes no further, since it is the first to say what the job's options are.
  bool takes_options(effects& out, instant now, messages::Hello::Reader& hello);
  /// Of a node that is let in: a line for each option that it and the master differ in.
  std::vector<std::string> differing_options(effects& out, messages::Hello::Reader& hello);
  /// What a node that was let in says about itself and its job.
  void learn_from(effects& out, instant now, messages::Hello::Reader& hello);
  /// What these were let in for is not the job's command after all.
  void evict_other_commands(effects& out, instant now, const command_identity& command);
  void extend_farewell(instant now, duration stop_within);
  void remind_of_farewell(effects& out, instant now);
  void welcome_to(effects& out, session_id session, const std::vector<std::string>& differing = {});
  void refuse_session(effects& out, session_id session, const node_name& node, const refusal& why,
                      const std::string& in_short = {});
  void announce_present(effects& out, messages::Hello::Reader& hello);
  void tell_if_everyone_left(effects& out, instant now);

  membership_options options_;
  messages::author author_;
  /// When all nodes that knew the master before this one have had time to come. Until then there
  /// may be more nodes than are known here.
  instant all_known_at_;
  job_command command_;
  job_options job_options_;
  /// Until then, or until a node is here, the one whose options were taken may be dialling.
  std::optional<instant> options_kept_until_;
  /// From here on a node that goes is no loss, and one that comes hears the verdict.
  bool job_over_ = false;
  /// No node that was here may take longer to end its workers.
  duration longest_stop_{};
  instant farewell_until_{}; ///< once the job is over
  reminder farewell_;
  bool told_that_everyone_left_ = false;
  /// Here or away. What is not in it is lost, and fenced if it comes back as it was.
  std::map<node_name, member> members_;
  /// A name is here or in members_, never in both: for the job the node is lost from the moment
  /// that its name is taken, and the newcomer is not there before the node's workers have ended.
  std::map<node_name, leaver> leaving_;
  /// The nodes that are away, by when they are lost.
  std::set<std::pair<instant, node_name>> due_;
  /// By name: each loss gives the node another incarnation.
  flapping flapping_;
  /// Most recent last; bounded by limits::nodes_max.
  std::deque<fenced_node> fenced_;
};

} // namespace troupe::actors
