#pragma once

#include "actors/master/recovery/exit_classes.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct recovery_options {
  /// How many failures of its workers each node may have in the life of the job (--max-restarts).
  std::uint32_t max_restarts = 0;
  /// When no restart is left: how long other members' failures are waited for before the verdict.
  duration settle{};
  /// The job ends, with an exit code of its own, when so many generations in a row have failed
  /// without progress. Nothing: progress is not asked for.
  std::optional<std::uint32_t> without_progress_max;
  /// A generation has made progress when it ran for this long before its first failure.
  duration progress_after = limits::progress_after;
  hardware_signs hardware;
};

/// What a failure costs. Watches the members of the sealed generation; the first failure decides
/// what is next: a new generation while the budget lasts, else the verdict. A failure is judged
/// only when no member is away: workers fail when a peer's node dies, and the node, not they, is
/// then the cause. It is charged to the node that has the root cause; what is done about it beyond
/// that depends on its class (exit_classes.hpp). Nodes that come or are lost are free of charge.
///
/// The root cause is the failure that showed first. Each node tells how long ago that was, so that
/// no clocks are compared; what is off by less than limits::order_uncertain may have come in
/// another order, and then a sudden end (by a signal, or before the start) is the cause of what
/// others say in words: peers of a rank that is gone fail within milliseconds.
class recovery_core {
 public:
  enum class phase {
    waiting,   ///< No generation runs.
    watching,  ///< A sealed generation runs.
    judging,   ///< Something failed while a member was away; its return or loss decides.
    parting,   ///< The next generation was asked for without the node that failed; if it cannot be
               ///< spared, its failure is judged like any other.
    settling,  ///< It failed for good; what else has failed is being waited for.
    reforming, ///< The next generation was asked for.
    concluded, ///< The verdict is out.
  };

  struct record {
    messages::any_msg message;
  };
  /// Reform or Conclude, for rendezvous.
  struct instruct {
    messages::any_msg message;
  };
  /// The job is over, for whoever runs the master.
  struct verdict {
    bool success;
    std::string reason;
    /// What launchers exit with; 0: as they do after any verdict.
    std::uint8_t exit_code = 0;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<record, instruct, verdict, note>;
  using effects = std::vector<effect>;

  recovery_core(recovery_options options, messages::author author);

  /// Takes up what an earlier incarnation or master recorded; before anything else. What it decided
  /// last is announced again: it may not have come to that.
  effects recall(instant now, const std::vector<messages::any_msg>& history);

  effects sealed(instant now, const messages::msg<messages::Sealed>& m);
  effects running(instant now, const messages::msg<messages::Running>& m);
  effects failed(instant now, const messages::msg<messages::Failed>& m);
  effects finished(instant now, const messages::msg<messages::Finished>& m);
  effects unformable(instant now, const messages::msg<messages::Unformable>& m);
  /// The world could be larger: worth a restart, unless part of the work is done already.
  effects nodes_waiting(instant now, const messages::msg<messages::NodesWaiting>& m);
  /// The node that was to be given up cannot be spared.
  effects indispensable(instant now, const messages::msg<messages::Indispensable>& m);
  /// About members of the running generation only; rendezvous filters.
  effects node_present(instant now, const messages::msg<messages::NodePresent>& m);
  effects node_away(instant now, const messages::msg<messages::NodeAway>& m);
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);

  /// Whoever runs the master wants the job to end.
  effects abandon(const std::string& reason);

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  phase current_phase() const { return phase_; }
  std::string in_words() const;

 private:
  /// A worker's end, as kept until the verdict.
  struct failure {
    node_name node;
    local_rank local = 0;
    global_rank rank = 0;
    std::int32_t pid = 0;
    std::int32_t exit_code = 0;
    std::string message;
    std::int64_t unix_time_ms = 0;
    bool before_start = false;
    std::string log_file;
    std::string traceback;
    std::string host;
    instant shown_at{};
    judgement judged;
  };

  void become_watching(instant now, const messages::World::Reader& world);
  void take_failures(instant now, const node_name& node,
                     capnp::List<messages::WorkerFailure>::Reader failures);
  void take_loss_of_workers(instant now, const node_name& node);
  void take_finished(effects& out, instant now, const node_name& node);
  void take_started(effects& out, instant now, const node_name& node);
  void judge(effects& out, instant now);
  /// The root cause is charged to its node, or there is nothing left to charge it to.
  void charge(effects& out, instant now);
  void part_with_node(effects& out);
  /// Failed generations in a row without progress, the current one included.
  std::uint32_t without_progress() const;
  void conclude_if_settled(effects& out, instant now);
  void put_root_cause_first();
  /// Free of charge.
  void restart(effects& out, const std::string& cause);
  void restart_charged(effects& out, const std::string& cause);
  void instruct_reform(effects& out, const std::string& cause, const node_name& without = {});
  void conclude(effects& out, bool success, const std::string& reason, std::uint8_t exit_code = 0);
  void announce_verdict(effects& out, const verdict& v);
  std::string root_cause_in_words() const;
  log::event started_in_words(instant now) const;
  void write_failures(capnp::List<messages::WorkerFailure>::Builder out) const;

  recovery_options options_;
  messages::author author_;
  phase phase_ = phase::waiting;
  generation current_{};
  std::uint32_t restart_count_ = 0; ///< of all nodes
  /// By node; no more of them than restarts were charged.
  std::map<node_name, std::uint32_t> charges_;
  std::uint32_t without_progress_ = 0; ///< up to the last charge
  /// When the current generation began to work, as far as this recovery knows.
  instant works_since_{};
  std::set<node_name> members_;
  std::set<node_name> started_;
  std::set<node_name> finished_;
  std::set<node_name> ended_; ///< members that failed and have no process left
  /// Members without a link, and since when; nothing if that was before this recovery started.
  std::map<node_name, std::optional<instant>> away_;
  std::vector<failure> failures_; ///< of current_, root cause first; bounded by
                                  ///< limits::failures_kept
  std::optional<instant>
      failed_at_; ///< when the failure that led to the current generation became known
  std::optional<instant> sealed_at_; ///< nothing if that was before this recovery started
  instant settled_at_{};
};

} // namespace troupe::actors
