#pragma once

#include "actors/master/catalog/catalog_core.hpp"
#include "actors/master/job/generation/member/member_core.hpp"
#include "actors/master/job/generation/rendezvous/rendezvous_core.hpp"
#include "actors/master/membership/membership_core.hpp"
#include "actors/master/recovery/recovery_core.hpp"
#include "actors/node_supervisor/checkpoint_saver/persister/persister_core.hpp"
#include "actors/node_supervisor/checkpoint_saver/replicator/replicator_core.hpp"
#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "actors/node_supervisor/training/worker_group/generation/worker/worker_core.hpp"
#include "actors/node_supervisor/uplink/uplink_core.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <csignal>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

/// In what words tests of the cores speak: short makers of messages, and effects as text.
namespace troupe::actors::testing {

/// When stories begin.
inline const instant dawn = instant{} + 1h;

// ---- messages ----

/// What a hello says of a node's training processes.
struct doing {
  messages::NodeState::Phase phase = messages::NodeState::Phase::IDLE;
  generation about{};
  std::uint16_t store_port = 0;
  /// Of local rank 0, 1, …: exit codes of those that failed.
  std::vector<int> exit_codes;
};
doing nothing();
doing idle_after(std::uint64_t g);
doing draining(std::uint64_t g);
doing ready_for(std::uint64_t g, std::uint16_t store_port = 0);
doing running_in(std::uint64_t g);
doing finished_in(std::uint64_t g);
doing failed_in(std::uint64_t g, std::vector<int> exit_codes = {1});

template<class T>
using tweak = std::function<void(typename T::Builder)>;

/// Of two slots and no wish for a rank, unless tweaked.
messages::msg<messages::Hello> hello(const node_name& node, std::uint64_t which = 1,
                                     const tweak<messages::Hello>& change = {});
messages::msg<messages::NodeState> node_state(const doing& d);
messages::msg<messages::NodePresent> present(const node_name& node, const doing& d = {},
                                             const tweak<messages::NodePresent>& change = {});
messages::msg<messages::NodeAway> away(const node_name& node);
messages::msg<messages::NodeLost> lost(const node_name& node);

messages::msg<messages::Prepared> prepared(const node_name& node, std::uint64_t g,
                                           std::uint16_t store_port = 0);
messages::msg<messages::Conclude> conclude(bool success, const std::string& reason = "because");
messages::msg<messages::Running> running(const node_name& node, std::uint64_t g);
/// Its local rank 0, with exit code 1 and this line.
messages::msg<messages::Failed> failed_with_words(const node_name& node, std::uint64_t g,
                                                  const std::string& said);
/// Local rank 0, 1, … with these exit codes.
messages::msg<messages::Failed> failed(const node_name& node, std::uint64_t g,
                                       const std::vector<int>& exit_codes = {1});
messages::msg<messages::Stopped> stopped(const node_name& node, std::uint64_t g,
                                         const std::vector<int>& exit_codes = {});
messages::msg<messages::WorkerStarted> worker_started(std::uint64_t g, local_rank local,
                                                      std::int32_t pid);
/// How a worker's process ended; before_start: it could not be started.
struct ending_of {
  ports::exit_status how;
  exit_report why;
  std::optional<duration> signalled; ///< how long ago our first signal was
  bool before_start = false;
  std::int32_t pid = 100;
};
messages::msg<messages::WorkerEnded> worker_ended(std::uint64_t g, local_rank local,
                                                  const ending_of& e);
messages::msg<messages::Finished> finished(const node_name& node, std::uint64_t g,
                                           bool asked = false);
messages::msg<messages::EndWanted> end_wanted(std::uint64_t g);
messages::msg<messages::EndAnswer> end_answer(const node_name& node, std::uint64_t g, bool begun);

/// A world of these nodes, two slots each, in this order.
messages::msg<messages::Sealed> sealed(std::uint64_t g, const std::vector<node_name>& nodes,
                                       std::uint32_t restart_count = 0);
messages::msg<messages::WorldProposed>
proposed(std::uint64_t g, const std::vector<node_name>& nodes, std::uint32_t restart_count = 0);
/// To one of them.
messages::msg<messages::Prepare> prepare(std::uint64_t g, const std::vector<node_name>& nodes,
                                         const node_name& node = "a",
                                         std::uint32_t restart_count = 0);
messages::msg<messages::RankOwners> owners(std::uint64_t g, const std::vector<node_name>& nodes);
messages::msg<messages::Start> start(std::uint64_t g);
messages::msg<messages::Stop> stop(std::uint64_t g);

/// Of step 100 at /ckpt, all of it. A save has the number of its step.
struct saving {
  std::uint64_t step = 100;
  std::uint64_t g = 1;
  std::uint32_t shards = 2;
  std::uint64_t open_from = 0; ///< 0: saves before this one have ended
  std::string place = "/ckpt";
};
/// One byte more than the shard's number, in rank_<shard>.pt; all others have 600 s.
messages::msg<messages::ShardReport> shard_written(const node_name& node, std::uint32_t shard,
                                                   const saving& s = {});
messages::msg<messages::ShardReport> shard_failed(const node_name& node, std::uint32_t shard,
                                                  const saving& s = {});
/// Shard 0 is from the first node, and so on.
messages::msg<messages::CommitStep> commit_step(const std::vector<node_name>& nodes,
                                                bool committed = false, const saving& s = {});
messages::msg<messages::StepCommitted> step_committed(const node_name& node, bool complete,
                                                      const saving& s = {}, bool shared = false);
messages::msg<messages::StepFinalized> step_finalized(bool complete, const saving& s = {});

// Records of the journal.
messages::any_msg proposed_record(std::uint64_t g);
messages::any_msg sealed_record(std::uint64_t g, const std::vector<node_name>& nodes,
                                std::uint32_t restart_count = 0);
messages::any_msg counted_record(std::uint64_t g, std::uint32_t restart_count,
                                 const node_name& node = "a");
messages::any_msg concluded_record(bool success);

inline ports::exit_status exited(int code) {
  return {false, code};
}
inline ports::exit_status killed_by(int signal) {
  return {true, signal};
}

// ---- effects as text, one per line; notes are left out ----

/// Shorter than messages::to_text: `Prepare g2: a(0,1) b(2,3), restart 1`.
std::string text(const messages::any_msg& m);

std::string text(const membership_core::effects& effects);
std::string text(const rendezvous_core::effects& effects);
std::string text(const member_core::effects& effects);
std::string text(const recovery_core::effects& effects);
std::string text(const uplink_core::effects& effects);
std::string text(const agent_core::effects& effects);
std::string text(const worker_core::effects& effects);
std::string text(const catalog_core::effects& effects);
std::string text(const persister_core::effects& effects);
std::string text(const replicator_core::effects& effects);

namespace detail {
template<class T, class = void>
struct is_note : std::false_type {};
template<class T>
struct is_note<T, std::void_t<decltype(T::event)>> : std::true_type {};
} // namespace detail

/// Several lines as `text` writes them.
template<class... Lines>
std::string lines(const Lines&... each) {
  std::string all;
  ((all += (all.empty() ? "" : "\n") + std::string(each)), ...);
  return all;
}

/// The sentences of the notes, one per line.
template<class Effect>
std::string notes(const std::vector<Effect>& effects) {
  std::string all;
  const auto add = [&all](const log::event& e) { all += (all.empty() ? "" : "\n") + e.text; };
  for (const auto& e : effects)
    std::visit(
        [&add](const auto& it) {
          if constexpr (detail::is_note<std::decay_t<decltype(it)>>::value)
            add(it.event);
        },
        e);
  return all;
}

} // namespace troupe::actors::testing
