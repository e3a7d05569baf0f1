#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

/// Every bound of the system, with the relations between them. All sizes in bytes unless the name
/// says otherwise.
namespace troupe::limits {

// The job. Larger jobs are refused with a clear line rather than served badly.
inline constexpr std::uint32_t nodes_max = 16'384;
inline constexpr std::uint32_t local_world_max = 1'024;
inline constexpr std::uint32_t restarts_max = 1'000'000;

// Messages. A world of `nodes_max` nodes (about 100 bytes each) must fit into one frame.
inline constexpr std::size_t frame_max = 8u << 20;
/// Before a peer has proven itself it may send only a Hello, with the state of at most one node in
/// it.
inline constexpr std::size_t handshake_frame_max = 256u << 10;
inline constexpr unsigned nesting_max = 32;
/// How many times its own size a message may be read before the reader refuses (amplification
/// through shared pointers).
inline constexpr std::size_t traversal_factor = 4;
inline constexpr std::size_t name_max = 255;
/// Free text inside messages: reasons, the tail of an error file.
inline constexpr std::size_t text_max = 16u << 10;
/// A worker's error file; a longer one is not read as one.
inline constexpr std::size_t error_file_max = 1u << 20;
/// A DeepSpeed config.
inline constexpr std::size_t elasticity_file_max = 1u << 20;
/// One line about a failure, and what is kept of a traceback: its end.
inline constexpr std::size_t failure_line_max = 1u << 10;
inline constexpr std::size_t traceback_max = 16u << 10;
/// All tracebacks in one message.
inline constexpr std::size_t tracebacks_max = 96u << 10;
/// What is read of a worker's log: its end. And of all of them in one message: the root cause is
/// among those that failed first.
inline constexpr std::size_t log_tail_max = 4u << 10;
inline constexpr std::size_t log_tails_max = 4 * log_tail_max;
/// The one line of them that told the kind of a failure.
inline constexpr std::size_t sign_max = 256;
static_assert(std::size_t{nodes_max} * 200 < frame_max);
static_assert(handshake_frame_max < frame_max);

// The link.
inline constexpr std::size_t send_queue_max = 64u << 20;
/// Checked messages handed to an actor and not yet taken by it; past this, reading pauses.
inline constexpr std::size_t credit_messages = 256;
/// Connections whose handshake is under way, and as many again that wait for theirs.
inline constexpr std::size_t unproven_connections_max = 256;
/// When there are that many, a handshake must have had this long before it is ended for another: a
/// whole job that reconnects at once is no attack, and each needs its TLS handshake.
inline constexpr auto unproven_grace = 1s;
/// Refused connections are told one by one up to this number in each such period, and then counted.
inline constexpr std::uint64_t refusals_told = 10;
inline constexpr auto refusals_counted_for = 10s;
inline constexpr auto handshake_within = 5s;
/// A sign of life when there is nothing else to say.
inline constexpr auto beat_every = 250ms;
/// Beats that a process which listens hears and sends in a second, at most: each costs it about 10
/// us. With more peers than that allows, beats become rarer and the lease longer.
inline constexpr std::size_t beats_per_second = 20'000;
inline constexpr int beats_in_a_lease = 8;
/// Membership is a lease that signs of life renew: a silent node is acted on within this. A pause
/// of half of it is never a death. docs/adr/0011-membership-is-a-lease.md has the sums.
inline constexpr std::chrono::milliseconds lease = 2s;
inline constexpr std::chrono::milliseconds lease_min = 1s;
inline constexpr std::chrono::milliseconds lease_max = 600s;
/// How long a node whose connection was closed, and not by a Goodbye, may take to be back: a
/// process that lives dials again at once.
inline constexpr auto return_within = 500ms;
/// The same when this process was away itself: the other end it may just have begun its longest
/// rest between two dials.
inline constexpr auto return_to_sleeper_within = 6s;
inline constexpr auto dial_within = 5s;
/// The same when no node at all was heard, from when one is again: a node may be dialling into the
/// void just then, and rest before it dials again.
inline constexpr auto return_to_deaf_within = 11s;
/// How long a closing link waits for its last messages to be taken.
inline constexpr auto linger_max = 1s;
/// Frames and bytes handed to the kernel in one gathered write.
inline constexpr std::size_t gather_frames_max = 64;
inline constexpr std::size_t gather_bytes_max = 1u << 20;
/// How long a node that has nothing running tries to reach its master before it gives up.
inline constexpr auto connect_within = 60s;
/// How long a node whose workers train does without its master: they do not need it until one fails
/// or all have finished. Time enough to start the master again by hand.
inline constexpr auto train_on_within = 30min;
/// How long workers train on where the network does not answer and other nodes may have formed a
/// world without this one: longer than a master that was cut off itself forgives.
inline constexpr auto isolated_within = 15s;
/// As long as a master hears no node, no loss would help the job; but nodes do not dial for ever.
inline constexpr auto deaf_at_most = connect_within;
inline constexpr auto redial_first = 100ms;
inline constexpr auto redial_max = 5s;
/// Accepting pauses this long when the process is out of file descriptors.
inline constexpr auto accept_backoff = 100ms;
/// A job token, in characters: fewer could be guessed from a handshake that was overheard.
inline constexpr std::size_t token_min = 32;
inline constexpr std::size_t token_max = 1'024;
static_assert(lease_min >= 4 * beat_every && lease_min <= lease && lease <= lease_max);
static_assert(lease == beats_in_a_lease * beat_every);
static_assert(return_within <= lease / 4);
static_assert(connect_within <= train_on_within);
// A pause of a second, and then a beat that comes a fifth of a second late.
static_assert(lease / 2 >= 1s && lease * 7 / 8 > 1s + beat_every + beat_every);
static_assert(redial_first * 4 < return_within);
static_assert(return_to_sleeper_within > redial_max + return_within);
static_assert(return_to_deaf_within > dial_within + redial_max + return_within);
static_assert(isolated_within > return_to_deaf_within && isolated_within < connect_within);
static_assert(unproven_grace < handshake_within);
static_assert(frame_max < send_queue_max);

// Membership and rendezvous (defaults of options).
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
/// After the master's restart: how long the nodes of a running generation may take to come back.
inline constexpr auto recall_within = 15s;
/// How long a node may take to stop an older generation and prepare a new one, beyond its shutdown
/// timeout.
inline constexpr auto prepare_slack = 30s;
/// After the verdict the master waits until every node has left. A node leaves when its workers
/// have ended and their last saves are complete or given up; this is what it may take beyond that.
/// A node that is away then is lost before; one that has not found a restarted master yet finds it
/// before.
inline constexpr auto farewell_within = 7s;
/// A generation that failed later than this after its start had made progress.
inline constexpr auto progress_after = 60s;
/// What launchers exit with when the job ended for want of progress.
inline constexpr std::uint8_t exit_no_progress = 3;
/// What a node said before its member was there, after a restart of the master.
inline constexpr std::size_t waits_for_member_max = 8;
/// Generations in a row that ended though no node and no worker had failed: the master has a bug.
inline constexpr std::uint32_t unexplained_ends_max = 5;
/// Failures this close to each other may have come in another order.
inline constexpr auto order_uncertain = 5ms;
static_assert(grow_quiet <= settle && settle < settle_most && grow_quiet < grow_most);
/// A node that is lost so often within a short time that it harms the others is made to wait before
/// it may join again: after so many losses, for so long, each time twice as long, and so long at
/// most. A quiet minute halves the count.
inline constexpr unsigned losses_free = 3;
inline constexpr auto rejoin_after_first = 1s;
inline constexpr auto rejoin_after_max = 30s;
inline constexpr auto losses_halve_every = 60s;
static_assert(lease + return_within < farewell_within);
static_assert(return_to_sleeper_within < farewell_within);
static_assert(rejoin_after_max < connect_within);
static_assert(recall_within > 2 * redial_max);

// Processes.
/// How long a process may take to be started: its files are opened for it, and a disk that others
/// fill, or a shared one, takes its time. Until then it has not failed.
inline constexpr auto start_within = 60s;
/// How long it may take to read what a process that failed has left, its error file and its log:
/// the job waits for it before it restarts.
inline constexpr auto explain_within = 5s;
inline constexpr auto stop_workers_within = 30s;
/// What a node may say of itself.
inline constexpr std::chrono::milliseconds stop_workers_most = 24h;
/// After SIGKILL a process is gone at once unless the kernel holds it (D state): then we say so and
/// go on.
inline constexpr auto kill_within = 5s;
/// A process that the kernel holds even so is waited for until then: only when it is gone may its
/// node take part in another generation.
inline constexpr auto held_by_kernel_within = 3'600s;

// The keeper, and the node supervisor in its care.
/// More crashes than that in so short a time are no bad luck.
inline constexpr std::size_t supervisor_crashes_max = 10;
inline constexpr auto supervisor_crashes_within = 60s;
/// After the first crash there is no wait, after the second this one, and then twice as long each
/// time; a supervisor that worked for a while is a first one again.
inline constexpr auto supervisor_works_after = 5s;
inline constexpr auto supervisor_restart_first = 100ms;
inline constexpr auto supervisor_restart_max = 1s;
/// A process that the system refuses to fork is tried again after the first wait, then after twice
/// as long each time;
inline constexpr auto fork_again_first = 100ms;
inline constexpr auto fork_again_max = 5s;
/// the supervisor for this long, while the workers train on without one,
inline constexpr auto supervisor_fork_within = 60s;
/// and the store for as long as the supervisor waits for it.
inline constexpr auto store_fork_within = 4s;
/// How long a launcher whose user pressed Ctrl-Z stays stopped, for the shell to see it.
inline constexpr auto stopped_for_the_shell = 200ms;
// A supervisor that always crashes is given up, on a machine that takes seconds to start it as
// well: otherwise the waits alone would keep the crashes apart.
static_assert(supervisor_crashes_max * 4 * supervisor_restart_max < supervisor_crashes_within);
/// What a supervisor leaves for its successor, at each of a few places.
inline constexpr std::size_t kept_bytes_max = 16u << 20;
inline constexpr std::size_t kept_places = 4;
/// Packets for a supervisor that does not read: one for each of its processes, and as many of the
/// rest.
inline constexpr std::size_t keeper_queue_max = 4 * local_world_max;
/// How long a store may take to listen.
inline constexpr auto store_opens_within = 5s;
static_assert(store_fork_within < store_opens_within);
/// What a killed launcher has left is looked for again and again, so long.
inline constexpr auto burial_within = 2s;
/// What other launchers may have left, at each start: control groups, and records of lives.
inline constexpr std::size_t abandoned_groups_looked_at = 64;
inline constexpr std::size_t life_records_looked_at = 4'096;
inline constexpr std::size_t life_record_bytes_max = 16u << 10;
static_assert(kept_bytes_max >= 2 * frame_max);

// Supervision.
inline constexpr auto request_within = 5s;
inline constexpr auto describe_within = 1s;
/// A child that a dynamic supervisor had is still in its report for this long, the newest of them.
inline constexpr auto ended_shown_for = 60s;
inline constexpr std::size_t ended_shown_max = 16;
/// How long an engine that goes waits for actors that were killed.
inline constexpr auto engine_patience = 1s;
inline constexpr std::size_t children_max = 32'768;
static_assert(children_max > nodes_max);

// The workers' store. Lengths of keys and values, and keys per request, are torch's own.
inline constexpr std::size_t store_key_max = 8u << 10;
inline constexpr std::size_t store_value_max = 8u << 20;
inline constexpr std::size_t store_keys_per_request_max = 128u << 10;
/// One request, and one answer: many values at once (multi_set, multi_get, a list of keys) must
/// fit.
inline constexpr std::size_t store_request_max = 256u << 20;
inline constexpr std::size_t store_answer_max = 256u << 20;
/// Keys, values and queues.
inline constexpr std::size_t store_memory_max = 2u << 30;
/// Requests half received, waiting clients, and answers not yet taken, of all clients together.
inline constexpr std::size_t store_traffic_max = 1u << 30;
/// Answers waiting for a client that does not read; past this its requests wait too.
inline constexpr std::size_t store_answers_pause = 1u << 20;
/// Requests behind one that blocks.
inline constexpr std::size_t store_held_back_max = 1u << 20;
inline constexpr std::size_t store_clients_max = 256u << 10;
/// Read at once, for all clients in turn.
inline constexpr std::size_t store_read_buffer = 256u << 10;
static_assert(store_value_max < store_request_max && store_value_max < store_answer_max);
static_assert(store_request_max < store_traffic_max && store_answer_max < store_traffic_max);
static_assert(store_clients_max > nodes_max);

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
/// Records that wait to be written, and then the size of the file: some 100,000 generations of 100
/// nodes.
inline constexpr std::size_t journal_queue_max = 1'024;
inline constexpr std::size_t journal_bytes_max = 1u << 30;
inline constexpr std::size_t journal_page_size = 4'096;
/// Pages in its write-ahead log before they are moved to the file itself, which waits for the disk.
inline constexpr std::size_t journal_log_pages = 4'096;
/// What a power cut may take: the decisions of this long, and of one wait for the disk.
inline constexpr auto journal_sync_within = 1s;
/// How long the journal may take to be read.
inline constexpr auto journal_within = 60s;
/// How long a decision waits for its record. A disk that is full stays so until its user has done
/// something about it; training goes on meanwhile, and a new master would find the same disk.
inline constexpr auto journal_patience = 24h;
static_assert(journal_bytes_max > 100 * frame_max);
/// What the records of a journal may come to before those that say nothing more are dropped.
inline constexpr std::size_t journal_compact_records = 512;
inline constexpr std::size_t journal_compact_bytes = 2 * frame_max;
static_assert(4 * journal_compact_bytes < journal_bytes_max);
/// Nodes whose failures are remembered.
inline constexpr std::size_t journal_charges_kept = 4 * nodes_max;
/// A journal whose disk is full is tried again after the first, then after twice as long each time.
inline constexpr auto journal_retry_first = 100ms;
inline constexpr auto journal_retry_max = 10s;
/// Records that a journal in the default place holds in memory while its disk is full.
inline constexpr std::size_t journal_unwritten_max = 4'096;

// The log.
/// Lines that wait for a slow terminal or disk; past this the oldest is dropped.
inline constexpr std::size_t log_queue_max = 1'024;
/// How long the end of a program waits for a terminal or a disk that takes no more.
inline constexpr auto log_end_within = 2s;
/// The same when the console is a file.
inline constexpr auto log_end_on_disk_within = 30s;
static_assert(log_end_within < log_end_on_disk_within);
static_assert(log_queue_max * text_max <= 16u << 20);

// The workers' output on the console.
/// A longer line passes in pieces.
inline constexpr std::size_t console_line_max = 256u << 10;
/// What is handed to the console at once: what a pipe holds, so that one can see whether it takes
/// any.
inline constexpr std::size_t console_write_max = 64u << 10;
/// How long other lines wait for the rest of one that passes in pieces; then it is ended.
inline constexpr auto console_piece_waits = 1s;
/// At the end of the launcher: how long a console that is no file may take nothing before what is
/// left stays in the files,
inline constexpr auto console_patience = 5s;
/// and how long it may take in all.
inline constexpr auto console_drain_within = 60s;
static_assert(console_patience < console_drain_within);

// What is written out.
/// A name of a stored file, all its parts together.
inline constexpr std::size_t storage_name_max = 1'024;
/// Directories within directories.
inline constexpr std::size_t storage_depth_max = 32;
/// Files of one list: a step of the largest job, with several shards for each rank.
inline constexpr std::size_t storage_list_max = 1u << 20;
/// A small file, read or replaced whole.
inline constexpr std::size_t storage_small_max = 64u << 20;
/// Shards of one step, and the text that names them all.
inline constexpr std::size_t shards_max = 256u << 10;
inline constexpr std::size_t manifest_bytes_max = storage_small_max;
/// Directories that a node's saver remembers at once.
inline constexpr std::size_t checkpoint_places_max = 16;
/// Steps that are there at once.
inline constexpr std::size_t steps_kept_max = 64u << 10;
static_assert(shards_max * 2 * 100 <= manifest_bytes_max && shards_max <= storage_list_max);

// Steps on their way to being complete.
/// Images of one node that are wanted and not settled.
inline constexpr std::size_t images_wanted_max = 4 * local_world_max;
/// What a training process may give all shards of a step.
inline constexpr std::chrono::seconds save_within_min = 1s, save_within_max = 3'600s;
/// How long a node may take to make a step complete at its place once all shards are there.
inline constexpr auto commit_within = 60s;
/// How long a step waits for a node that was lost: it may join anew, with its images.
inline constexpr auto lost_writer_within = 15s;
/// Worlds of older generations whose steps may still be on their way.
inline constexpr std::size_t worlds_remembered = 8;
/// Steps that the master waits for at once, and ended ones that it can still tell of.
inline constexpr std::size_t steps_open_max = 64;
inline constexpr std::size_t steps_settled_kept = 256;
/// All that says what a step consists of, in one message.
inline constexpr std::size_t step_files_max = frame_max - (64u << 10);
/// How long finished workers' images are waited for: the saver gives each of them up before.
inline constexpr auto drain_within = 4 * save_within_max + 3 * commit_within;
/// A node that leaves a job which was ended or has failed waits so long for its last saves.
inline constexpr auto last_saves_within = 120s;
/// After a crash of the saver the agent that waits for them asks again.
inline constexpr auto drain_again_after = 200ms;
inline constexpr unsigned drain_tries_max = 10;
static_assert(steps_open_max < steps_settled_kept);

// Copies of images at other nodes.
/// One part of a piece, in a message of its own: the memory of such messages is used again and
/// again, while that of large ones goes back to the system and costs more than all else. And what a
/// giver has on its way to one holder.
inline constexpr std::size_t copy_part = 63u << 10;
inline constexpr std::size_t copy_window = 8u << 20;
/// What a node gives to others in a second, unless told otherwise: training needs its network too.
inline constexpr std::uint64_t copy_rate = 512u << 20;
/// What a giver may send at once after a rest, when it is told how fast it may send at most.
inline constexpr std::size_t copy_burst = 4u << 20;
/// The largest image of which pieces are held.
inline constexpr std::uint64_t copy_image_max = std::uint64_t{1} << 44;
/// A giver that has nothing to give lets go of its links.
inline constexpr auto copy_links_idle = 30s;
/// Connections of givers at a holder: some for each member of its groups.
inline constexpr std::size_t copy_givers_max = 16 * local_world_max;
/// Parities of a step that one local rank's memory holds: with those of the step before it, as many
/// as it has slots.
inline constexpr std::uint32_t copy_parity_max = 4;
static_assert(copy_part + 1024 <= (64u << 10) && copy_window < send_queue_max);
static_assert(copy_part <= copy_burst && copy_window / copy_part < credit_messages);

// What is remembered.
inline constexpr std::size_t failures_kept = 64;
/// A Hello tells them all; the rest is their names.
static_assert(tracebacks_max + log_tails_max + failures_kept * 2 * failure_line_max <=
              handshake_frame_max);
static_assert(log_tail_max <= text_max && sign_max <= failure_line_max);

} // namespace troupe::limits
