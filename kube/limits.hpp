#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

/// Machines that wait to be marked; further ones are told and not marked.
inline constexpr std::size_t marks_waiting_max = 256;
/// Of one address; those that have ended are among them.
inline constexpr std::size_t pods_of_address_max = 100;
/// Attempts for one machine. With the waits between them an API server may be away for minutes.
inline constexpr int mark_attempts_max = 12;
inline constexpr auto mark_again_first = 1s;
inline constexpr auto mark_again_most = 60s;
/// What a server may ask for by Retry-After.
inline constexpr auto mark_retry_after_most = 120s;

/// Objects of one answer to a list.
inline constexpr std::size_t page_of_list = 500;
/// Objects of one collection; further ones are told once and not followed.
inline constexpr std::size_t objects_followed_max = 50'000;
inline constexpr auto watch_again_first = 500ms;
inline constexpr auto watch_again_most = 10s;
/// A collection that could not be heard of for so long is told of.
inline constexpr auto watch_unheard_untold = 30s;
/// A server ends a watch after a time that is asked for: this much, and up to twice as much.
inline constexpr auto watch_for = 240s;
/// One that does not end it in time is taken for gone.
inline constexpr auto watch_ends_late = 30s;
/// A watch that ended sooner is opened again after a wait.
inline constexpr auto watch_least = 2s;

/// ScalePlans of one job that are remembered as taken.
inline constexpr std::size_t plans_kept = 1'000;
/// One that is done, and could not be told so.
inline constexpr auto plan_told_again = 10s;
/// Nodes of one job.
inline constexpr std::uint32_t job_nodes_max = 10'000;
/// What a job may allow for each of its pods.
inline constexpr std::uint32_t pod_restarts_max = 100'000;

/// Of one job's master: requests about its pods that are under way.
inline constexpr std::size_t pod_calls_max = 16;
/// A server and a scheduler are not flooded by a large job.
inline constexpr std::uint64_t pods_made_per_second = 20;
inline constexpr std::uint64_t pods_made_at_once = 20;
/// Between the end of a rank's pod and the next one, twice as long each time. The first that ends
/// is replaced at once.
inline constexpr auto pod_again_first = 1s;
inline constexpr auto pod_again_most = 60s;
/// A pod that has run so long is not part of a row of failures.
inline constexpr duration pod_ran_well = 10min;
/// A pod whose node is lost may still say how it has ended.
inline constexpr auto pod_of_lost_node_ends = 5s;
/// One whose node was given up saves what it has, and ends by itself: the master's own limit for
/// that is shorter, unless its workers may take long to end.
inline constexpr auto pod_of_left_node_ends = 5min;
/// After so long a cluster has noticed by itself that a machine is lost (its default is 40 s);
/// until then pods of the job are placed elsewhere, or wait.
inline constexpr auto machine_of_lost_node_avoided = 60s;
/// Machines that a job avoids, each a rule in every pod.
inline constexpr std::size_t machines_avoided_max = 32;
/// A pod that does not begin may have a reason that passes.
inline constexpr auto pod_wait_untold = 30s;
inline constexpr duration pod_pending_max = 15min;
/// Of a reason for which pods wait: ranks told of in words.
inline constexpr std::size_t pod_waits_told_max = 8;
/// Reasons of one rank, and reasons of a job.
inline constexpr std::size_t pod_wait_reasons_max = 16;
/// A pod that was made and that no watch tells of is looked for.
inline constexpr auto pod_unseen_max = 30s;
/// Of one rank, or of a job's masters, for their logs; earlier ones are deleted.
inline constexpr std::size_t ended_pods_kept = 10;
/// Identities of a rank's pods that are gone, of which late answers may tell.
inline constexpr std::size_t gone_pods_remembered = 8;
/// After an answer that says that the master may not, or that is not understood.
inline constexpr auto pods_refused_again = 60s;
/// How often out of memory may raise a container's memory.
inline constexpr std::uint32_t memory_raises_max = 32;

/// Others may take a lease that was not renewed for so long; its holder gives it up before.
inline constexpr duration lease_lasts = 15s;
inline constexpr duration lease_renewed_within = 10s;
inline constexpr duration lease_renewed_every = 3s;
inline constexpr duration lease_again = 2s;

/// A journal's records in a ConfigMap, which may have a MiB in all. A request has them in base64.
inline constexpr std::size_t config_map_bytes_max = 768u << 10;
/// What has come to such a journal before what says nothing more is dropped: each append sends all
/// of it again.
inline constexpr std::size_t config_map_compact_bytes = 32u << 10;
/// How long a decision waits for such a journal. An API server that restarts is back later.
inline constexpr duration config_map_patience = 3s;
inline constexpr auto config_map_again_first = 100ms;
inline constexpr auto config_map_again_most = 10s;
inline constexpr auto config_map_retry_after_most = 60s;
/// Conflicts in a row after which the next attempt waits as well.
inline constexpr int config_map_conflicts_max = 3;
/// How long a master that starts waits for an API server that is away.
inline constexpr auto config_map_open_within = 300s;

// The operator.
inline constexpr duration job_again_first = 500ms;
inline constexpr duration job_again_most = 30s;
/// After a refusal that a person has to mend: a right, or a definition that the server does not
/// know yet, is often given a moment later. Doubles up to `job_again_most`.
inline constexpr duration job_refused_first = 2s;
/// A master that ran so long ended by bad luck.
inline constexpr auto master_ran_long = 60s;
/// How long a pod that was made may take to be told by the watch.
inline constexpr auto pod_told_within = 15s;
/// How long a node without workers waits for its master. Kubernetes gives up a machine after 40 s
/// of silence, and the master's pod there after 30 s more; then it is made anew elsewhere.
inline constexpr auto pod_waits_for_master = 300s;
/// Pods of nodes that run when the job is over end by themselves, within this.
inline constexpr auto pods_end_within = 120s;
/// The nodes of a job that ends are gone before its master is.
inline constexpr auto nodes_gone_untold = 3s;
/// A job's status is not written more often.
inline constexpr auto status_again = 1s;
/// Of one job.
inline constexpr std::size_t job_pods_max = 20'000;
inline constexpr std::size_t job_events_max = 16;

} // namespace troupe::limits
