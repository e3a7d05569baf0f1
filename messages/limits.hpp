#pragma once

#include "runtime/base/limits.hpp"

/// The bounds of messages and of what they carry.
namespace troupe::limits {

// Frames. A world of `nodes_max` nodes (about 100 bytes each) must fit into one.
inline constexpr std::size_t frame_max = 8u << 20;
/// Before a peer has proven itself it may send only a Hello, with the state of at most one node in
/// it.
inline constexpr std::size_t handshake_frame_max = 256u << 10;
inline constexpr unsigned nesting_max = 32;
/// Of a Hello: options of the job, and the bytes of all their names, values and files.
inline constexpr std::size_t job_options_max = 64;
inline constexpr std::size_t job_option_content_max = 128u << 10;
/// Other names of a node's machine, in its hello.
inline constexpr unsigned machine_names_max = 4;
static_assert(job_option_content_max <= handshake_frame_max / 2);
/// How many times its own size a message may be read before the reader refuses (amplification
/// through shared pointers).
inline constexpr std::size_t traversal_factor = 4;
static_assert(std::size_t{nodes_max} * 200 < frame_max);
static_assert(handshake_frame_max < frame_max);
static_assert(frame_max < send_queue_max);

// Between a training process and its node supervisor.
inline constexpr std::size_t worker_packet_max = 64u << 10;
/// Of PyTorch's record of its collectives, as JSON, and of one piece of it.
inline constexpr std::size_t flight_record_max = 8u << 20;
inline constexpr std::size_t flight_record_piece = 48u << 10;
static_assert(flight_record_piece + 1024 < worker_packet_max);
/// How long a process that was hit by a fatal signal waits for GoOn: so much later its end may come
/// where the supervisor does not answer.
inline constexpr auto fatal_signal_wait = 1'500ms;

// Texts.
/// Free text inside messages: reasons, the tail of an error file.
inline constexpr std::size_t text_max = 16u << 10;
/// One line about a failure, and what is kept of a traceback: its end.
inline constexpr std::size_t failure_line_max = 1u << 10;
inline constexpr std::size_t traceback_max = 16u << 10;
/// All tracebacks in one message.
inline constexpr std::size_t tracebacks_max = 96u << 10;
/// What is read of a worker's log: its end. And of all of them in one message: the root cause is
/// among those that failed first.
inline constexpr std::size_t log_tail_max = 4u << 10;
inline constexpr std::size_t log_tails_max = 4 * log_tail_max;
/// The one line of a log that told the kind of a failure.
inline constexpr std::size_t matched_line_max = 256;
static_assert(log_tail_max <= text_max && matched_line_max <= failure_line_max);
static_assert(log_queue_max * text_max <= 16u << 20);

} // namespace troupe::limits
