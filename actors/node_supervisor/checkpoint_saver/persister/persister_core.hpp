#pragma once

#include "actors/step_key.hpp"
#include "ckpt/catalog/checkpoint_host.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Takes each snapshot that this node's training processes want written from *persist requested* to
/// *finalized*: writes it, tells the master's catalog, makes the step complete here when told to,
/// and finalizes it when the catalog has. Decides nothing about a step: what it knows is this
/// node's snapshots. What is lost on the way, with a link or a master, it says again.
class persister_core {
 public:
  /// The host reads the slot until it answers by written(); a write that has begun cannot be taken
  /// back.
  struct write {
    ckpt::persist_request snapshot;
  };
  /// Answered by committed() under the same key.
  struct commit {
    step_key which;
    ckpt::commit_order order;
  };
  /// What need not be kept at a place goes: what is left of saves that have ended, and older steps
  /// if a newer one is complete at every node that has a part of it. Not answered.
  struct retain {
    ckpt::retain_order order;
  };
  /// The bit in the slot's word goes, and with it what protects the snapshot: the process that
  /// waits for the outcome hears it, and the slot may be used again.
  struct finalize {
    ckpt::persist_request snapshot;
    result<void> how;
  };
  /// Answered by looked() when the snapshots that are requested by now have been told.
  struct look {
    std::uint64_t question = 0;
  };
  /// The answer to a question of drain(). To the agent, which finishes or leaves then.
  struct drained {
    std::uint64_t question = 0;
  };
  /// For the master; lost if there is no link, and said again on the next one. A Welcome brings
  /// linked(), which says again whatever is not finalized.
  struct report {
    messages::any_msg message;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<write, commit, retain, finalize, look, drained, report, note>;
  using effects = std::vector<effect>;

  persister_core(node_name node, messages::author author);

  // From the host. A snapshot that is known already is the same one.
  /// What can be refused is refused at once and said, so that no slot stays bound by a wish that
  /// was dropped.
  effects persist_requested(instant now, const ckpt::persist_request& snapshot);
  effects written(instant now, const ckpt::persist_request& snapshot,
                  const result<ports::receipt>& how);
  effects committed(instant now, const step_key& which, const result<ckpt::completed>& how);
  effects looked(instant now, std::uint64_t question);

  // From the master.
  /// Either may come twice, late, or about a step of which nothing is here any more. The answer is
  /// the same each time, or none.
  effects commit_step(instant now, const messages::msg<messages::CommitStep>& m);
  /// Complete or given up, with the reason: to the slot it makes no difference.
  effects step_finalized(instant now, const messages::msg<messages::StepFinalized>& m);

  /// There is a new link: a master that may know nothing.
  effects linked(instant now);
  /// The agent wants to hear when everything that is requested by now is finalized. A snapshot that
  /// is not in time, written or finalized, is not waited for.
  effects drain(instant now, std::uint64_t question);
  /// Only for waits that have no other end: a disk or a master that does not answer.
  effects tick(instant now);

  /// Of the snapshots alone: drains have no clock here.
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  struct entry {
    ckpt::persist_request what;
    instant until;                                 ///< it is written, and then finalized
    std::optional<result<ports::receipt>> outcome; ///< of writing it
    bool late = false; ///< it is being written still, and no drain waits for it
  };
  struct step {
    /// A commit is under way in the host, which can be asked for only once at a time.
    bool committing = false;
    /// Says the good news to the user, once for all nodes.
    bool leads = false; ///< the first to complete it, not a follower
    std::optional<result<void>> outcome;
    bool shared = false; ///< another node had completed it here
  };

  /// After the write, and again on each new link until the step is finalized.
  void say_shard(effects& out, const entry& e);
  /// To a catalog that lost its memory this is the one sign that a step is complete: it learns
  /// nothing from a disk.
  void say_committed(effects& out, const step_key& which, const step& s);
  /// The snapshot was written, so nothing is lost but the knowledge.
  void give_up(effects& out, const entry& e);
  /// Without one a step is no business of this node: an order about it comes from a master that
  /// knew another life of this saver.
  const entry* entry_of(const step_key& which) const;
  ckpt::save_id open_from(const step_key& ended, ckpt::save_id by_master) const;
  /// What is left without snapshots is nothing that this node could be asked about.
  void forget_step_without_snapshots(const step_key& which);
  /// After each event that may have let go of a snapshot.
  void answer_drains(effects& out);
  /// The same loss again: of a place that a newer run has taken each save is one.
  bool is_told(const std::string& place, const std::string& why);

  node_name node_;
  messages::author author_;
  /// Bounded by limits::persist_requests_max. No handover keeps it: the bits in shared memory
  /// outlive this actor, and the host tells the next one of them.
  std::map<ckpt::snapshot_key, entry> snapshots_;
  /// Of steps that have a snapshot here. Only what a repeated order needs. Whether the step is
  /// complete is known to the catalog alone.
  std::map<step_key, step> steps_;
  /// Places where a newer run saves, so that no save of this one is kept any more: a person hears
  /// it once. Bounded by limits::checkpoint_places_max.
  std::set<std::string> taken_places_;
  /// Several may be open, each under a number of its own.
  std::set<std::uint64_t> drains_; ///< looked, and not answered
};

} // namespace troupe::actors
