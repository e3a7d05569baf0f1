#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/strategy.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// stop_order::detail: the node hears the verdict instead of Stop, and is not waited for.
inline constexpr std::int32_t verdict_follows = 1;

struct member_options {
  node_name node;
  /// The node supervisor that has the place; none: the journal does not say it.
  incarnation which{};
  /// How long the node may take from Prepare to Prepared, and from Stop to Stopped: the time its
  /// workers have to end, and then some.
  duration obey_within{};
  /// After a restart of the master: how long the node may take to come back.
  duration recall_within{};
  unsigned group_rank = 0; ///< Its place in the world.
};

/// What all members of one generation have in common.
struct member_world {
  messages::msg<messages::WorldProposed> proposed;
  messages::msg<messages::RankOwners> owners;
  /// None, until the world is sealed. Then it is what a node that is only prepared is told.
  std::optional<messages::msg<messages::Start>> start;
};

/// One node's part in one generation, seen from the master.
///
///     preparing --Prepared--> ready --Start--> running --Finished--> ended well
///         \______________________\______________|
///                     order to stop             | Failed: the generation fails at once, and this
///                           v                   v member ends when its node has cleaned up
///                        stopping --Stopped, or the node is lost--> ended
///
/// A directive is repeated on every new link, since a link that drops loses what is on its way; the
/// node's answer may also come as its state in a hello. A member that an earlier master has sealed
/// begins as `recalled`: it sends nothing before the node has said where it stands.
///
/// Fence: every event carries its generation in the envelope; one of another is dropped.
class member_core {
 public:
  enum class phase {
    recalled,  ///< The world was sealed by an earlier master; the node has not come back yet.
    preparing, ///< The node ends what it ran before, and gets ready.
    ready,     ///< It has answered; the others have not yet.
    running,   ///< It was told to start.
    stopping,  ///< It was told to end its processes.
    ended,     ///< The member's part is over.
  };
  /// No phase is entered twice: the next generation has members of its own.
  static constexpr phase_table<phase> phases{
      "a member",
      {
          {phase::recalled, "recalled", {phase::running, phase::stopping, phase::ended}},
          {phase::preparing, "preparing", {phase::ready, phase::stopping, phase::ended}},
          {phase::ready, "ready", {phase::running, phase::stopping, phase::ended}},
          {phase::running, "running", {phase::stopping, phase::ended}},
          {phase::stopping, "stopping", {phase::ended}},
          {phase::ended, "ended", {}},
      }};

  /// For the node, if it has a link; else it is repeated when there is one.
  /// Nothing is queued for a node without a link: the next hello says where it stands by then.
  struct direct {
    messages::any_msg message;
  };
  /// The barrier is between all members, so it is not one member's to decide.
  struct tell_rendezvous {
    messages::msg<messages::Prepared> message;
  };
  /// What the planner judges by: Running, Failed, EndAnswer, Finished, Stopped, as the node has
  /// said it.
  struct report {
    messages::any_msg message;
  };
  /// The generation has failed; this member still waits for its node.
  /// Said before the member ends: its siblings are ordered to stop now, and not only when this
  /// node, which may take its whole time for that, has cleaned up.
  struct fail_early {
    std::string why;
  };
  /// Membership gives the node up; it may join anew. NodeLost is the answer.
  /// The member does not end by itself: until the node is lost, processes of the generation may
  /// run.
  struct evict {
    std::string reason;
  };
  struct end {
    /// A bad end is the reason of the whole generation's, unless one was said before.
    std::optional<std::string> why; ///< Nothing: well, or as ordered.
  };
  using effect = std::variant<direct, tell_rendezvous, report, fail_early, evict, end>;
  using effects = std::vector<effect>;

  /// A member of a world that is about to be formed; or, with `start`, of one that an earlier
  /// master has sealed.
  member_core(member_options options, member_world world, messages::author author, instant now);

  /// The first event.
  effects begin();

  // From membership: the node's link.
  effects present(instant now, const messages::msg<messages::NodePresent>& m);
  /// The planner has heard of it before: it must know the cause when the generation ends.
  effects lost(const messages::msg<messages::NodeLost>& m);
  /// A newcomer has the node's name. The node ends its workers; `lost` follows when they are gone.
  effects replaced(const std::string& reason);

  // From the node.
  /// None of these is trusted to come once: links drop, and the node says them again.
  effects prepared(const messages::msg<messages::Prepared>& m);
  /// For the planner, which says how long training stood still.
  effects running(const messages::msg<messages::Running>& m);
  /// For the planner, which had the node's workers asked to end.
  effects end_answer(const messages::msg<messages::EndAnswer>& m);
  /// The generation fails at once, and this member goes on until its node is clean.
  effects failed(const messages::msg<messages::Failed>& m);
  /// The only good end that was not asked for.
  effects finished(const messages::msg<messages::Finished>& m);
  /// The node is clean: only now may it take part in another generation.
  effects stopped(const messages::msg<messages::Stopped>& m);

  /// From rendezvous: the world is sealed.
  /// Kept for each further link, since the node may miss it any number of times.
  effects start(const messages::msg<messages::Start>& m);

  /// From the supervisor. A shutdown concerns the master only: the node hears nothing of it.
  /// A shutdown is a crash or the end of the master; training goes on, and the members of the next
  /// master find it.
  effects ordered(instant now, const sup::stop_order& order);

  /// A node that has had its time is given up, or was never there.
  effects tick(instant now);
  /// When the node's time is over, to obey or to come back.
  std::optional<instant> next_wakeup() const;
  phase current_phase() const { return phase_; }
  std::string in_words() const;

 private:
  /// Another life of the name: it has none of the processes, whatever it says.
  bool is_another(const messages::msg<messages::NodePresent>& m) const;
  /// The fence; a member that has ended hears nothing either.
  bool about_this(const messages::any_msg& m) const;
  void become(phase next);
  /// Reported each time, and fails the generation once.
  void take_failure(effects& out, const messages::any_msg& said, const std::string& why);
  /// Once: what comes after the end means nothing.
  void finish(effects& out, std::optional<std::string> why);
  void compare(effects& out, const messages::msg<messages::NodePresent>& m);
  void tell_start(effects& out) const;
  /// Written anew for each link: the first one may have been lost with its link.
  messages::any_msg stop_message();
  /// The node's own seat: nothing else of the world concerns it.
  messages::any_msg prepare_message();
  messages::any_msg state_as_failed(messages::NodeState::Reader state);
  messages::any_msg lost_workers();

  member_options options_;
  member_world world_;
  messages::author author_;
  generation current_;
  phase_of<phases> phase_;
  bool failed_ = false;     ///< fail_early has been said
  bool replaced_ = false;   ///< another node has its name; the end comes with `lost`
  bool absent_ = false;     ///< stopping: it has not come back since it was recalled
  bool node_clean_ = false; ///< the node has said that nothing of the generation is left
  /// For the node's log and its user: the same words as here.
  std::string stop_reason_;
  /// Nothing while the node trains or waits for others: then no answer of it is due.
  std::optional<instant> obey_until_;
};

} // namespace troupe::actors
