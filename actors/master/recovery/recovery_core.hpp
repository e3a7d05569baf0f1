#pragma once

#include "actors/limits.hpp"
#include "actors/master/recovery/failure_ledger.hpp"
#include "actors/master/recovery/partings.hpp"
#include "actors/master/recovery/planned_end.hpp"
#include "actors/master/recovery/recovery_options.hpp"
#include "actors/master/recovery/restart_ladder.hpp"
#include "actors/master/recovery/roster.hpp"
#include "actors/master/recovery/run_account.hpp"
#include "actors/master/recovery/taken_plans.hpp"
#include "actors/master/recovery/topology_order.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/reminder.hpp"
#include "runtime/base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// A check that was asked for, and of which life of each node.
struct check_under_way {
  std::uint64_t number = 0;
  bool alone = false;
  std::map<node_name, incarnation> nodes;
};

/// The planner: symptoms in, one plan out, with its reason.
///
/// It hears three things: which nodes are there (membership), what the members of the running
/// generation report, and that a generation has ended (the supervision tree). It says three things:
/// start this generation, stop that one, the job is over. Everything between is the tree's: in
/// which order actors end, and within which time. So a dead worker, a lost node, a rescale, a
/// standby that takes over and an excluded machine are all the same story: a generation ends, and
/// the planner decides from what is known by then which one follows.
///
/// What members report carries its generation, and what is about another one is dropped: a failure
/// that is still on its way when its generation has ended is not counted against the next.
///
///     gathering --a world fits--> forming --sealed--> running
///         ^                          |                   | a member fails, or the planner stops it
///         |                          v                   v
///         +------- the generation has ended ---------- ending
///
/// What ended a generation is judged once, when it has ended:
/// 1. all members finished: the job has;
/// 2. a member was lost, before or as workers failed: they failed because their peer was gone. A
/// new
///    generation, which counts against no budget;
/// 3. workers failed: the root cause takes the lowest rung that is left (restart_ladder.hpp), and
///    where its class says that the machine is broken, that of another machine;
/// 4. else it was stopped by a plan of this planner, or could not be formed: a new generation.
class recovery_core {
 public:
  enum class phase {
    gathering, ///< No generation is up; waiting for enough nodes.
    forming,   ///< One is up, and not sealed yet.
    running,   ///< It is sealed.
    ending,    ///< It failed or was stopped, and is on its way down.
    concluded, ///< The verdict is out; a node that comes is told so.
  };
  /// `gathering` leads to `running` where a generation is recalled that an earlier master sealed.
  static constexpr phase_table<phase> phases{
      "the planner",
      {
          {phase::gathering, "gathering", {phase::forming, phase::running, phase::concluded}},
          {phase::forming,
           "forming",
           {phase::gathering, phase::running, phase::ending, phase::concluded}},
          {phase::running, "running", {phase::gathering, phase::ending, phase::concluded}},
          {phase::ending, "ending", {phase::gathering, phase::concluded}},
          {phase::concluded, "concluded", {}},
      }};

  /// Append to the journal; everything after it waits for the acknowledgement.
  struct record {
    messages::any_msg message;
  };
  /// Send to these nodes. One without a link does not get it: what counts is said again later.
  struct direct {
    std::vector<node_name> nodes;
    messages::any_msg message;
  };
  /// Start this generation below `job`. With `start` it was sealed by an earlier master.
  struct start_generation {
    messages::msg<messages::WorldProposed> world;
    /// For each of its nodes, once it may start.
    messages::msg<messages::RankOwners> owners;
    std::optional<messages::msg<messages::Start>> start;
    /// How long each member may take to get ready, and to stop; in order of group rank.
    std::vector<duration> obey_within;
    std::optional<node_name> against;
  };
  struct stop_generation {
    generation which;
    std::string reason;
    /// Its nodes hear the verdict, and are not waited for.
    bool verdict_follows = false;
  };
  /// What was counted against each node before this planner began.
  struct recall_restarts {
    std::map<node_name, std::uint32_t> used;
  };
  /// Have membership give a node up; with `may_rejoin` a new incarnation of it is welcome. NodeLost
  /// is the answer: there is one way only in which a node goes.
  struct evict {
    node_name node;
    std::string reason;
    bool may_rejoin;
    std::string in_short = {}; ///< for a log that has the reason already
  };
  /// Tell membership that the job is over: nodes that go are expected to, and waited for.
  struct announce_end {};
  /// The job is over, for whatever runs the master.
  struct verdict {
    bool success;
    std::string reason;
    /// What launchers exit with; 0: as they do after any verdict.
    std::uint8_t exit_code = 0;
  };
  /// Ask network_check, for `options.check_within` at most: answered by nodes_checked() or
  /// check_failed() under the same number.
  struct check_nodes {
    std::uint64_t number = 0;
    messages::msg<messages::CheckWanted> message;
  };
  /// Its hardware is broken: nothing else is to be scheduled on its machine.
  struct mark {
    node_name node;
    std::string address;
    std::string reason;
  };
  /// It is not heard any more: another one is wanted.
  struct lose {
    node_name node;
    std::string address;
    std::string reason;
  };
  /// It was given up for good: another machine is wanted in its place.
  struct replace {
    node_name node;
    std::string address;
    bool is_broken;
    std::string reason;
  };
  /// Of scale_wanted() under this number.
  struct reply {
    std::uint64_t number = 0;
    messages::msg<messages::ScaleReport> report;
  };
  struct note {
    log::event event;
  };
  using effect =
      std::variant<record, direct, start_generation, stop_generation, recall_restarts, evict, mark,
                   lose, replace, check_nodes, announce_end, verdict, reply, note>;
  using effects = std::vector<effect>;

  recovery_core(rendezvous_options sizes, recovery_options options, messages::author author,
                instant now);

  /// Takes up what an earlier incarnation or master recorded; before anything else.
  effects recall(instant now, const std::vector<messages::any_msg>& history);

  // From membership.
  effects node_present(instant now, const messages::msg<messages::NodePresent>& m);
  /// Decides nothing: most are back within half a second, and their workers have not noticed.
  effects node_away(instant now, const messages::msg<messages::NodeAway>& m);
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);

  // From the generation that is up: that it is sealed, and what its members' nodes report.
  /// The seal is on record, so from here on the world exists for later masters too.
  effects sealed(instant now, const messages::msg<messages::Sealed>& m);
  effects running(instant now, const messages::msg<messages::Running>& m);
  effects failed(instant now, const messages::msg<messages::Failed>& m);
  effects finished(instant now, const messages::msg<messages::Finished>& m);
  effects end_answer(instant now, const messages::msg<messages::EndAnswer>& m);
  /// Carries what failed while the node ended its processes: the judgement has all of it.
  effects stopped(instant now, const messages::msg<messages::Stopped>& m);

  /// From the tree; `why` unless all its members ended well or as they were told to.
  effects generation_ended(instant now, generation which, const std::optional<std::string>& why);

  // From network_check.
  effects nodes_checked(instant now, std::uint64_t number,
                        const messages::msg<messages::NodesChecked>& m);
  effects check_failed(instant now, std::uint64_t number, const std::string& why);
  /// What the file says of the network, or why it says nothing.
  effects topology_known(instant now, const topology_answer& answer);

  /// A person, or the cluster, says how large the job may be.
  effects scale_wanted(instant now, std::uint64_t number,
                       const messages::msg<messages::ScaleRequest>& m);

  /// What the cluster gives, and where it gives no more.
  effects supplied(instant now, const ports::cluster::supply& supply);

  /// The user, or whatever runs the master, ends it.
  effects abandon(instant now, const std::string& reason);

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  /// For one that begins late: the world that runs, as it was told when it was sealed.
  std::optional<messages::msg<messages::Sealed>> running_world();

  phase current_phase() const { return phase_; }
  generation current() const { return current_; }
  std::uint32_t nodes_max() const { return sizes_.nodes_max; }
  std::string in_words() const;

 private:
  void become_gathering(effects& out, instant now);
  void become_forming(effects& out, instant now);
  void become_ending(instant now);

  // The nodes that take part (recovery_core_gathering.cpp).
  void consider_proposing(effects& out, instant now);
  void not_enough(effects& out, instant now);
  bool gathers_losses() const;
  /// Only the first world waits for the file. Each later one has an order to keep.
  bool waits_for_topology() const { return first_world_ && topology_.awaited(); }
  /// Whether to wait for more, though there are enough.
  bool waiting_for_more(instant now) const;
  /// Until when; nothing: until a node that is away is back or lost.
  std::optional<instant> settled_at() const;
  void propose(effects& out, instant now, std::vector<candidate> present, std::uint32_t size);
  /// Stops the generation for nodes that wait, if the world would become larger and no work is
  /// lost.
  void consider_growing(effects& out, instant now);
  std::optional<instant> growth_due() const;
  void take_newcomer(effects& out, instant now, const candidate& who);

  // The generation that runs is to end by a plan (recovery_core_planned.cpp).
  void end_as_planned(effects& out, instant now, const std::string& reason);
  void ask_to_end(effects& out, std::vector<node_name> members);
  void stop_as_planned(effects& out, instant now, const std::string& reason);
  void as_planned(effects& out, instant now);
  void take_asked(effects& out, instant now, const node_name& node);
  void consider_planned_end(effects& out, instant now);
  std::optional<instant> planned_end_due() const;

  void tell_standbys(effects& out, const std::vector<candidate>& all);
  void tell_whether_dispensable(effects& out);
  void repeat_whether_dispensable(effects& out, std::vector<node_name> members);
  void consider_giving_up(effects& out, instant now);
  void consider_waiting_in_vain(effects& out, instant now);
  void stop_waiting_for_return(effects& out, instant now);
  void stop_what_has_ended(effects& out, const node_name& node, messages::NodeState::Reader state);

  // Sizes that change while the job runs (recovery_core_scaling.cpp).
  std::optional<std::string> scale_validation_error(const world_sizes& wanted) const;
  void record_sizes(effects& out, const world_sizes& wanted, const std::string& plan);
  void resize(std::uint32_t nodes_min, std::uint32_t nodes_max);
  /// Stops a generation that is larger than it may be now.
  void consider_shrinking(effects& out, instant now);
  std::string scaled_in_words() const;

  // The check before nodes take part (recovery_core_checking.cpp).
  /// Whether no world may be proposed yet, since these have to be checked first.
  bool checks_first(effects& out, instant now, const std::vector<candidate>& present);
  /// Beside a generation: what newcomers can find out without its members.
  void check_newcomers(effects& out);
  void ask_for_check(effects& out, const std::vector<candidate>& nodes, bool alone);
  void check_again(effects& out, instant now);
  void spare_one_suspect(effects& out, const std::vector<node_name>& undecided,
                         const check_under_way& asked);
  /// Those for which a generation may be stopped.
  std::vector<candidate> worth_a_stop(std::vector<candidate> present) const;

  // What it costs (recovery_core_verdict.cpp).
  void judge(effects& out, instant now, const std::optional<std::string>& why);
  void stop_members(effects& out, const std::string& reason);
  std::optional<node_name> lost_as_the_cause() const;
  void take_failure(effects& out, instant now);
  void restart_counted(effects& out, instant now, const restart_ladder::step& step);
  void part_with_node(effects& out, instant now, const std::optional<restart_ladder::step>& step);
  void record_restart(effects& out, const restart_ladder::step& step);
  void ask_to_leave(effects& out, std::vector<node_name> told, generation its,
                    const node_name& node, const std::string& reason);
  void restart_free(effects& out, instant now, const std::string& cause, const std::string& kind);
  enum class ending { finished, failed, stopped };
  void conclude(effects& out, instant now, ending how, const std::string& reason,
                std::uint8_t exit_code = 0);

  void recall_verdict(effects& out, const verdict& v);
  void recall_generation(effects& out, instant now, const messages::msg<messages::Start>& start);
  bool is_member(const node_name& node) const { return members_.count(node) != 0; }
  bool is_up() const;
  /// A NodeLost that membership could not say, since no master was there.
  void replace_member(effects& out, instant now, const node_name& node);
  /// The fence, in one place.
  bool about_current(const messages::any_msg& m) const;
  void forget_generation();
  void take_world(messages::World::Reader world);
  void take_started(effects& out, instant now, const node_name& node);
  /// The first one counts: training stands still from there on.
  void note_failure(instant since);
  std::vector<duration> members_may_take() const;
  instant recall_until() const;
  void check() const;

  // recovery_core_words.cpp
  messages::msg<messages::WorldProposed> world_message(instant now);
  void write_world(messages::World::Builder out, std::optional<duration> since_failure) const;
  messages::msg<messages::RankOwners> owners_message();
  log::event joined_in_words(const node_name& node) const;
  log::event waits_in_words(const node_name& node) const;
  log::event waiting_for_more_in_words(instant now) const;
  log::event relaunched_in_words(std::uint32_t waited_for) const;
  log::event started_in_words(instant now) const;
  log::event reminder_in_words(instant now) const;
  log::event standing_by_in_words(const std::vector<node_name>& standbys,
                                  const std::string& why) const;
  std::string standby_in_words(std::size_t present) const;

  rendezvous_options sizes_;
  world_sizes started_with_; ///< what nodes may have been told as well (--nnodes)
  taken_plans plans_;
  recovery_options options_;
  messages::author author_;
  phase_of<phases> phase_{phase::gathering};
  instant phase_since_;
  instant began_;

  // The nodes that could take part.
  roster roster_;
  growth growth_;
  topology_order topology_;
  std::set<node_name> standing_by_;     ///< told so
  partings partings_;                   ///< not in the roster
  std::optional<instant> enough_since_; ///< gathering: when nodes_min was reached
  bool first_world_ = true;             ///< none was proposed yet
  /// No journal says so, but a node has trained already: its peers are on their way as well.
  std::optional<instant> others_come_until_;
  reminder waiting_; ///< gathering
  std::optional<check_under_way> checking_;
  std::uint64_t checks_ = 0;
  std::uint32_t checks_failed_ = 0; ///< in a row
  /// Names of nodes that left after a check with others: bounded by limits::check_faulty_kept. By
  /// itself such a node seems to work, and each time it came it would have the job stopped.
  std::set<node_name> found_faulty_;
  std::optional<instant> check_again_at_;
  /// The past was recalled; until recall_within later its members are only away, not lost.
  std::optional<instant> recalled_at_;

  // The generation that is up, or was last.
  /// The newest number that this master knows to be proposed. A number is never used for two
  /// worlds, not by two masters either: runtime/base/generations.hpp.
  generation current_{};
  /// By any node: beyond current_ if the journal lost its tail, or another master had the node.
  generation newest_heard_{};
  std::vector<seat> world_; ///< in order of group rank; empty while gathering
  /// Which life of each node has the place: another one under its name is not the member.
  std::map<node_name, incarnation> members_;
  std::set<node_name> started_;
  /// Their part is done: what becomes of these nodes does not concern the generation any more.
  std::set<node_name> finished_;
  /// Members without a link, and since when; nothing if that was before this planner began.
  /// A recalled member begins here: no node has a link to a master that has just started.
  std::map<node_name, std::optional<instant>> away_;
  /// Members that are lost, and since when they were away.
  std::map<node_name, instant> lost_;
  /// Collected until the generation has ended. Judged at the first report, the loudest rank would
  /// be the cause and not the first one.
  failure_ledger failures_;
  /// Kept until the end is judged: without it that end would look like a bug of the master.
  std::optional<std::string> stopped_for_; ///< this planner's own reason to stop it
  /// The workers were asked to end by themselves. A node that says so speaks for an earlier master.
  std::optional<planned_end> planned_;
  bool asked_to_end_ = false;
  /// A world that was never sealed has trained nothing, so its end is no restart for the user.
  bool was_sealed_ = false;
  std::optional<bool> said_dispensable_; ///< what the members know of it
  /// What makes the judgement happen once: a start that fails and an end are told separately.
  bool in_the_tree_ = false;         ///< started, and its end has not been told yet
  std::optional<instant> failed_at_; ///< by what ends the generation, or has led to it
  /// No failure of the generation is older than this, whatever age a node tells.
  std::optional<instant> sealed_at_; ///< nothing if that was before this planner began
  /// When the current generation began to work, as far as this planner knows.
  instant works_since_{};

  run_account account_;
  restart_ladder ladder_;
  std::optional<node_name> count_next_; ///< the next start, whenever it is, is paid by this node
  std::uint32_t unexplained_ = 0;       ///< ends in a row that nothing outside the master caused
  /// Kept whole: a node that comes after the verdict hears all of it.
  messages::any_msg conclusion_;
};

} // namespace troupe::actors
