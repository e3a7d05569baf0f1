#pragma once

#include "actors/step_key.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/storage.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Decides for every step that is being saved whether it becomes complete: when all its shards are
/// written one node that wrote makes it so, then the others do where that is another place, then
/// all hear how it ended. What was ended is remembered for a while, since reports repeat.
///
/// A step waits for no node that is lost: it is given limits::lost_writer_within to be back with
/// its snapshots, and then the step goes on, or is given up, without it. Without that the last step
/// of a job would wait until its time for saving is over, and all other nodes with it.
///
/// A step is open or it has ended, never both; what has ended does not change any more. While it is
/// open it has one deadline, so none waits for ever, whatever its nodes do.
///
/// Nothing here outlives the master: after a new link every saver says again what is not finalized,
/// and whether it has made the step complete.
class catalog_core {
 public:
  /// Lost if a node has no link: its saver repeats its report on the next one, and hears it then.
  struct say {
    std::vector<node_name> to;
    messages::any_msg message;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<say, note>;
  using effects = std::vector<effect>;

  explicit catalog_core(messages::author author) : author_(std::move(author)) {}

  /// Idempotent, as all of this conversation: a report may come any number of times.
  effects shard_reported(instant now, const messages::msg<messages::ShardReport>& m);
  /// Also of a node that is not asked any more: one that was replaced may have been the first.
  effects step_committed(instant now, const messages::msg<messages::StepCommitted>& m);
  /// Which node has which ranks of a generation, and so writes which shards.
  void sealed(const messages::msg<messages::Sealed>& m);
  /// The node may join anew with its snapshots, so this shortens waits and decides nothing.
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);
  /// The one way in which a step ends of which no node says anything more.
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  /// Each phase can wait for other nodes than the one before, so each has a deadline of its own.
  enum class phase {
    gathering,  ///< Shards are missing.
    committing, ///< All are there; one node makes the step complete.
    following,  ///< It is; the other nodes that wrote look whether that was their place as well.
  };
  /// `committing` begins anew where a shard is written anew; `gathering` is followed by `following`
  /// where an earlier master had the step committed.
  static constexpr phase_table<phase> phases{
      "a step",
      {
          {phase::gathering, "gathering", {phase::committing, phase::following}},
          {phase::committing, "committing", {phase::committing, phase::following}},
          {phase::following, "following", {}},
      }};
  /// What the node says that it wrote: the manifest will name it, so a later comparison finds
  /// damage.
  struct file {
    std::string name;
    ports::receipt what;
    node_name node;
  };
  struct step {
    phase_of<phases> at{phase::gathering};
    /// As the first report says. One that says otherwise means another save of the same number.
    std::uint32_t shards = 1;
    std::uint32_t world_size = 0;
    /// As the processes were told it: none of them waits for longer, so no step needs to.
    duration save_within{};
    /// When the first report came. A step that was hurried for a lost node gets its time back from
    /// here.
    instant since;
    instant until; ///< the phase ends
    /// Of a step that is being completed: nodes that were asked and have not answered are waited
    /// for until then.
    instant give_up_at;
    /// By shard. Its order is also that in which nodes are asked to commit.
    std::map<std::uint32_t, file> files;
    /// Also those whose shard failed: all of them wait to hear how the step ends.
    std::set<node_name> reporters;
    /// The one that is asked now. An earlier one may still answer, and that counts as well.
    node_name committer;
    std::set<node_name> asked;     ///< to be the committer
    std::set<node_name> committed; ///< made it complete at their place

    /// At some place. What was written there stays so, whatever becomes of the other nodes.
    bool is_complete() const { return !committed.empty(); }
  };
  /// What is said again to a saver that has missed it.
  struct ending {
    bool complete = false;
    std::string why;
    ckpt::save_id open_from; ///< by then
  };
  /// As the world was sealed: ranks of a node follow each other.
  struct member {
    node_name node;
    std::uint32_t first_rank = 0;
    std::uint32_t slots = 0;
  };
  /// Enough to tell which node owes a shard, and no more: the world itself is the planner's.
  struct known_world {
    std::uint32_t world_size = 0;
    std::vector<member> members; ///< by first rank
  };
  using open_steps = std::map<step_key, step>;

  /// At the same place only: another directory has steps of its own.
  void give_up_older(effects& out, const step_key& newer);
  open_steps::iterator open(effects& out, instant now, const step_key& which,
                            messages::ShardReport::Reader first);
  void take_file(effects& out, instant now, open_steps::iterator at,
                 messages::ShardReport::Reader report);
  // Transitions.
  void become_committing(effects& out, instant now, open_steps::iterator at);
  /// From committing, or from gathering where an earlier master had the step committed.
  void become_following(effects& out, instant now, open_steps::iterator at);
  /// The only way out of `open_`.
  void finalize(effects& out, open_steps::iterator at, bool complete, std::string why);

  /// Each node is asked once. When all were, those that are not lost have until `give_up_at`.
  void ask_next_committer(effects& out, instant now, open_steps::iterator at);
  /// Only a node whose answer is awaited: a second order to another would make two committers.
  void ask_again(effects& out, const step_key& which, const step& s, const node_name& node);
  void time_is_up(effects& out, instant now, open_steps::iterator at);
  /// Of a step that is complete where it was made so, and not at nodes that do not answer.
  void end_without_followers(effects& out, open_steps::iterator at);
  messages::any_msg commit_step(const step_key& which, const step& s);
  ckpt::save_id open_from(const step_key& which) const;
  messages::any_msg finalized(const step_key& which, const ending& how);
  /// The node that is to write a shard that is missing; nothing if that is not known.
  std::optional<node_name> writer_of(const step_key& which, const step& s,
                                     std::uint32_t shard) const;
  bool any_not_lost(const std::set<node_name>& nodes) const;
  /// Whether all nodes that the step cannot go on without, in its phase, are lost.
  bool waits_only_for_lost(const step_key& which, const step& s) const;
  /// A node that was lost before it wrote a shard that is missing.
  std::optional<node_name> lost_writer(const step_key& which, const step& s) const;
  /// Shortens the wait of a step that only lost nodes could go on with.
  void hurry(effects& out, instant now, open_steps::iterator at);
  /// Called by any report: a saver that speaks is there, whatever membership has said before.
  void came_back(const node_name& node);

  /// Counted anew when asked for, since a shard that is written again may change them.
  static std::set<node_name> followers(const step& s);

  messages::author author_;
  /// Bounded by limits::steps_open_max.
  /// Each costs the master a little memory only; the bound is against a job that never completes
  /// one.
  open_steps open_;
  std::string last_complete_; ///< since this master began, in words
  /// Of the newest generations; bounded by limits::worlds_remembered.
  /// Lost with the master. Then no writer is known, and each step has its whole time.
  std::map<generation, known_world> worlds_;
  /// Nothing was heard of them since they were lost. Bounded by limits::nodes_max.
  /// Kept by name also after the steps that waited: the next step may wait for the same node.
  std::set<node_name> lost_;
  /// Bounded by limits::steps_finalized_kept; the order in which they ended.
  /// Without them a report that repeats would open its step anew, and wait for shards in vain.
  std::map<step_key, ending> finalized_;
  std::deque<step_key> finalized_in_order_;
  /// Directories that several nodes were seen to have in common. Bounded by
  /// limits::checkpoint_places_max. Unknown to a new master until the next step.
  std::set<std::string> shared_places_;
};

} // namespace troupe::actors
