#pragma once

#include "ckpt/limits.hpp"
#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

/// The bounds of the job and of its decisions: membership, rendezvous, recovery, generations,
/// budgets, steps that are to become complete.
namespace troupe::limits {

// Membership. How long each end of a lost link waits for the other one.
/// The same as `return_within` when this process was away itself: the other end may just have begun
/// its longest rest between two dials.
inline constexpr auto return_to_sleeper_within = 6s;
/// The same when no node at all was heard, from when one is again: a node may be dialling into the
/// void just then, and rest before it dials again.
inline constexpr auto return_to_isolated_within = 11s;
/// How long a node that has nothing running tries to reach its master before it gives up.
inline constexpr auto connect_within = 60s;
/// How long a node whose workers train does without its master: they do not need it until one fails
/// or all have finished. Time enough to start the master again by hand.
inline constexpr auto train_on_within = 30min;
/// How long workers train on where the network does not answer and other nodes may have formed a
/// world without this one: longer than a master that was cut off itself forgives.
inline constexpr auto isolated_within = 15s;
/// Other nodes that a node asks whether they have the master, and how often.
inline constexpr std::size_t neighbours_max = 3;
inline constexpr auto neighbours_asked_every = 1s;
/// A dial into the void is not waited for: the network may be back before it fails.
inline constexpr auto neighbours_dialled_again = 2s;
/// How far apart two nodes may notice that their master is away: a beat, and what the network adds.
/// A neighbour is asked so much later than a node has missed its master, and a link that is younger
/// by less than that is none that was there all the time.
constexpr duration noticed_apart(duration of_lease) {
  return of_lease / 2 > 1s ? of_lease / 2 : duration{1s};
}
/// When none of them has answered: this node is the one that is cut off, or all are. A machine that
/// stands still takes the connection and answers nothing, which is known after `dial_within`.
constexpr duration neighbours_silent_within(duration of_lease) {
  return noticed_apart(of_lease) + dial_within + 500ms;
}
static_assert(lease + neighbours_silent_within(lease) < isolated_within);
/// Nodes that ask this one at once, and how long each may be here.
inline constexpr std::size_t neighbours_asking_max = 16;
inline constexpr auto neighbours_ask_within = 5s;
/// As long as a master hears no node, no loss would help the job; but nodes do not dial for ever.
inline constexpr auto isolated_at_most = connect_within;
inline constexpr auto redial_first = 100ms;
inline constexpr auto redial_max = 5s;
static_assert(connect_within <= train_on_within);
static_assert(redial_first * 4 < return_within);
static_assert(return_to_sleeper_within > redial_max + return_within);
static_assert(return_to_isolated_within > dial_within + redial_max + return_within);
static_assert(isolated_within > return_to_isolated_within && isolated_within < connect_within);

/// A node that is lost so often within a short time that it harms the others is made to wait before
/// it may join again: after so many losses, for so long, each time twice as long, and so long at
/// most. A quiet minute halves the count.
inline constexpr unsigned losses_free = 3;
inline constexpr auto rejoin_after_first = 1s;
inline constexpr auto rejoin_after_max = 30s;
inline constexpr auto losses_halve_every = 60s;
/// After the verdict the master waits until every node has left. A node leaves when its workers
/// have ended and their last saves are complete or given up; this is what it may take beyond that.
/// A node that is away then is lost before; one that has not found a restarted master yet finds it
/// before.
inline constexpr auto farewell_within = 7s;
static_assert(lease + return_within < farewell_within);
static_assert(return_to_sleeper_within < farewell_within);
static_assert(rejoin_after_max < connect_within);

// Rendezvous and recovery (defaults of options).
/// The first world, with MIN nodes here and not yet MAX: it is formed when no node has come for
/// this long, and
inline constexpr auto settle = 500ms;
/// after this long at the latest, though nodes keep coming. A later node joins the running job.
inline constexpr auto settle_most = 5s;
/// A running job takes newcomers in when no node has come for this long, or after
inline constexpr auto grow_quiet = 100ms;
inline constexpr auto grow_most = 1s;
/// When generations that lasted less than this follow each other, newcomers wait longer, up to
inline constexpr auto grow_short_lived = 10s;
inline constexpr auto grow_back_off_most = 30s;
inline constexpr auto join_timeout = 600s;
/// Workers that are asked to end by a plan: until one has ended or saved, and until all have ended.
inline constexpr auto planned_end_begin_within = 30s;
inline constexpr auto planned_end_within = 60s;
inline constexpr auto planned_end_max = 86'400s;
/// The first world waits for a file that tells of the network and is not complete yet; and for a
/// disk that does not answer longer than that by so much.
inline constexpr auto topology_wait = 60s;
inline constexpr auto topology_wait_max = 3'600s;
inline constexpr auto topology_read_slack = 5s;
/// After the master's restart: how long the nodes of a running generation may take to come back.
inline constexpr auto recall_within = 15s;
/// How long a node may take to stop an older generation and prepare a new one, beyond its shutdown
/// timeout.
inline constexpr auto prepare_slack = 30s;
/// A generation that failed later than this after its start had made progress.
inline constexpr auto progress_after = 60s;
/// Plans of the cluster that are remembered as done, in each record of the job's sizes.
inline constexpr std::size_t plans_taken_kept = 32;
/// A generation that fails within this has failed at its start. From the second such failure in a
/// row on the next start waits: the first time, twice as long each time, and at most.
inline constexpr auto failed_at_start_within = 10s;
inline constexpr auto start_pause_first = 100ms;
inline constexpr auto start_pause_most = 5s;
/// What launchers exit with when the job ended for want of progress.
inline constexpr std::uint8_t exit_no_progress = 3;
/// What a node said before its member was there, after a restart of the master.
inline constexpr std::size_t waits_for_member_max = 8;
/// Generations in a row that ended though no node and no worker had failed: the master has a bug.
inline constexpr std::uint32_t unexplained_ends_max = 5;
/// Failures this close to each other may have come in another order.
inline constexpr auto order_uncertain = 5ms;
static_assert(grow_quiet <= settle && settle < settle_most && grow_quiet < grow_most);
static_assert(recall_within > 2 * redial_max);

// Workers.
/// How long a process may take to be started: its files are opened for it, and a disk that others
/// fill, or a shared one, takes its time. Until then it has not failed.
inline constexpr auto start_within = 60s;
/// How long a node may take to read what a process that failed has left, its error file and its
/// log: the job waits for it before it restarts.
inline constexpr auto explain_within = 5s;
inline constexpr auto stop_workers_within = 30s;
/// What workers leave behind has the rest of their time, and never less than this. At the end of a
/// job that succeeded it has all of it, and then this long from when it is asked to end.
inline constexpr auto left_behind_least = 1s;
inline constexpr auto left_behind_asked = 5s;
/// A user who has asked for the end is told this often what is waited for; less often where a long
/// time would give more lines than this.
inline constexpr auto countdown_every = 5s;
inline constexpr int countdown_lines = 6;
/// Of many ranks that are told in a line so many are named.
inline constexpr std::size_t ranks_named = 4;
/// What a node may say of itself.
inline constexpr std::chrono::milliseconds stop_workers_most = 24h;
/// A process that the kernel holds beyond `kill_within` is waited for until then: only when it is
/// gone may its node take part in another generation.
inline constexpr auto held_by_kernel_within = 3'600s;
inline constexpr std::size_t failures_kept = 64;
// A Hello tells of all failures that are kept; the rest is their names.
static_assert(tracebacks_max + log_tails_max + failures_kept * 2 * failure_line_max <=
              handshake_frame_max);

// Queues between actors and the world.
/// Effects of a core that wait for the journal.
inline constexpr std::size_t pending_effects_max = 4 * nodes_max;
/// Questions a session may have open with its node.
inline constexpr std::size_t open_questions_max = 64;
/// Nodes whose own trees are shown, for one question; of the others only the session is.
inline constexpr std::size_t tree_nodes_asked_max = 1'024;
/// A node that has not answered within this is shown as silent. Each supervisor of the node has
/// waited for its own children by then, unless the supervisors themselves stand still.
inline constexpr auto tree_node_within = 2s;
static_assert(tree_node_within < request_within && describe_within < tree_node_within);
/// Levels of a node's own tree, and of the master's above it. Each takes two of `nesting_max`; the
/// envelope takes some as well.
inline constexpr unsigned tree_node_levels_max = 8;
inline constexpr unsigned tree_levels_above = 4;
static_assert(2 * (tree_node_levels_max + tree_levels_above) + 6 < nesting_max);
/// Bytes of one whole answer: what is beyond is left out, and a row says so.
inline constexpr std::size_t tree_bytes_max = frame_max - (1u << 20);

// The journal.
/// How long the journal may take to be read.
inline constexpr auto journal_within = 60s;
/// How long a decision waits for its record. A disk that is full stays so until its user has done
/// something about it; training goes on meanwhile, and a new master would find the same disk.
inline constexpr auto journal_patience = 24h;
/// What the records of a journal may come to before those that say nothing more are dropped.
inline constexpr std::size_t journal_compact_records = 512;
inline constexpr std::size_t journal_compact_bytes = 2 * frame_max;
/// Nodes whose failures are remembered.
inline constexpr std::size_t journal_restarts_kept = 4 * nodes_max;
/// A journal whose disk is full is tried again after the first, then after twice as long each time.
inline constexpr auto journal_retry_first = 100ms;
inline constexpr auto journal_retry_max = 10s;
/// Records that a journal in the default place holds in memory while its disk is full.
inline constexpr std::size_t journal_unwritten_max = 4'096;
// Room for some 100,000 generations of 100 nodes.
static_assert(journal_bytes_max > 100 * frame_max);
static_assert(4 * journal_compact_bytes < journal_bytes_max);

// Steps on their way to being complete.
/// How long a node may take to make a step complete at its place once all shards are there.
inline constexpr auto commit_within = 60s;
/// How long a step waits for a node that was lost: it may join anew, with its snapshots.
inline constexpr auto lost_writer_within = 15s;
/// Worlds of older generations whose steps may still be on their way.
inline constexpr std::size_t worlds_remembered = 8;
/// Steps that the master waits for at once, and ended ones that it can still tell of.
inline constexpr std::size_t steps_open_max = 64;
inline constexpr std::size_t steps_finalized_kept = 256;
/// All that says what a step consists of, in one message.
inline constexpr std::size_t step_files_max = frame_max - (64u << 10);
/// How long finished workers' snapshots are waited for: the saver gives each of them up before.
inline constexpr auto drain_within = 4 * save_within_max + 3 * commit_within;
/// A node that leaves a job which was ended or has failed waits so long for its last saves.
inline constexpr auto last_saves_within = 120s;
/// Before the user is told that they are waited for.
inline constexpr auto last_saves_told_after = 2s;
/// After a crash of the saver the agent that waits for them asks again.
inline constexpr auto drain_again_after = 200ms;
inline constexpr unsigned drain_tries_max = 10;
static_assert(steps_open_max < steps_finalized_kept);

// Diagnosis.
/// Training processes of one node that are watched, and of a job that are compared.
inline constexpr std::size_t watched_ranks_max = 4'096;
inline constexpr std::size_t ranks_diagnosed_max = 100'000;
/// Process groups of a job, by name and members.
inline constexpr std::size_t communicators_known_max = 65'536;
/// One line about a hang, and lines of evidence that come with it.
inline constexpr std::size_t sentence_max = 600;
inline constexpr std::size_t evidence_lines_max = 16;
inline constexpr std::size_t evidence_line_max = 256;
inline constexpr std::size_t place_max = 160;
inline constexpr std::size_t slow_peers_max = 16;
inline constexpr std::size_t diagnoses_kept = 16;
/// Beyond what reading stacks may take: merging them at a node, and the way to the master.
inline constexpr auto stacks_on_the_way = 700ms;
/// A shell's request for stacks: it may join one gathering, which another takes the place of, and
/// pictures of the largest job are then written.
inline constexpr auto stacks_answer_within = 30s;
/// A shell's wish to scale: it is on record before it is answered, and a disk may be slow.
inline constexpr auto scale_answer_within = 30s;
/// Such wishes that wait at once.
inline constexpr std::size_t scale_requests_max = 16;
/// Requests that wait for stacks at once.
inline constexpr std::size_t stacks_requests_max = 16;
/// Corrections of one verdict.
inline constexpr std::uint32_t corrections_max = 8;
/// Ranks that are named as slow at once, in all.
inline constexpr std::size_t stragglers_told_max = 8;
/// The speed of a world is measured over so many steps and so long, again and again; of the first
/// such window nothing is learnt, and nothing is told before so many others.
inline constexpr std::uint64_t speed_steps_min = 20;
inline constexpr auto speed_measured_for = 20s;
inline constexpr std::uint32_t speed_windows_min = 3;
/// A larger world is worse that does less than this part of what a smaller one did.
inline constexpr double speed_worse_below = 0.95;
/// Sizes of worlds of which the speed is known.
inline constexpr std::size_t speeds_known_max = 64;

// The check before the start (defaults of options, and bounds).
/// How long each probe of it may take. Devices may take seconds to be ready.
inline constexpr auto check_probe_within = 30s;
/// What an answer may take beyond that.
inline constexpr auto check_on_the_way = 2s;
/// Once half of all have answered, the others have so many times as long as those took, and at
/// least:
inline constexpr int check_patience_factor = 10;
inline constexpr auto check_patience_least = 5s;
/// Nodes whose own probe was late are checked together if they answer within this.
inline constexpr auto check_late_together = 1s;
/// Each group reduces and gathers so much, so often.
inline constexpr std::uint64_t check_bytes = 8u << 20;
inline constexpr std::uint32_t check_repeats = 3;
/// And devices by their own library, whose links are a hundred times faster than one of TCP: what
/// takes a tenth of a second there is a difference that can be told from chance.
inline constexpr std::uint64_t check_device_bytes = 64u << 20;
inline constexpr std::uint32_t check_device_repeats = 20;
inline constexpr double check_slow_by_least = 0.1;
/// Bandwidth among all nodes (--comm-perf-test).
inline constexpr std::uint32_t perf_test_repeats = 5;
inline constexpr int perf_test_patience = 4;
/// Nodes of which each result is told.
inline constexpr std::size_t check_nodes_told_max = 1'024;
/// Nodes that were found faulty are remembered: their names.
inline constexpr std::size_t check_faulty_kept = 1'024;
/// Of what a node says about a probe, in sentences.
inline constexpr std::size_t check_words_max = 256;
/// A whole check: the planner asks again after this. More rounds than any check has.
inline constexpr int check_steps_max = 24;
/// A check that could not be made is tried so often.
inline constexpr std::uint32_t check_tries_max = 3;

// The channel to the training processes.
/// A process says hello as soon as it is connected; one that is not known yet is soon, or never.
inline constexpr auto worker_hello_within = 10s;
/// Connections of one training process and those that it has started.
inline constexpr std::size_t worker_links_per_rank = 4;
/// What is told of a version.
inline constexpr std::size_t worker_version_max = 64;
/// A process that says it took longer is not believed.
inline constexpr duration first_step_most = 720h;
/// PyTorch's records of all processes of one node, which are kept in memory until they are whole,
/// and how long they are waited for.
inline constexpr std::size_t flight_records_max = 64u << 20;
inline constexpr duration flight_records_within = 10s;
static_assert(flight_records_max >= flight_record_max);
/// How long the stacks of processes that a fatal signal has hit are read; when such a process is
/// let go whether they came or not, so that it hears it in time; and how many a node reads: each
/// has a file, and a job that may restart without bound crashes without bound.
inline constexpr duration crash_read_within = 1'000ms;
inline constexpr duration crash_answered_within = 1'300ms;
inline constexpr std::size_t crashes_read_max = 256;
static_assert(crash_read_within < crash_answered_within &&
              crash_answered_within < fatal_signal_wait);

} // namespace troupe::limits
