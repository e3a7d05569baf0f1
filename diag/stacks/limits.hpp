#pragma once

#include "messages/limits.hpp"

/// The bounds of stacks and of what they are merged into.
namespace troupe::limits {

/// A rank is below this in the largest job that there can be.
inline constexpr std::uint32_t ranks_max = nodes_max * local_world_max;

// One stack. A longer one keeps its beginning, by which it is merged, and its end, where it stands.
inline constexpr std::size_t stack_frames_max = 512;
inline constexpr std::size_t stack_innermost_kept = 127;

// One process.
inline constexpr std::size_t process_threads_max = 4'096;
/// Of all its threads.
inline constexpr std::size_t process_frames_max = 128u << 10;
/// Its names, functions and sources together.
inline constexpr std::size_t process_names_bytes_max = 2u << 20;
inline constexpr std::size_t stack_name_max = 1'024;
/// Lines of what could not be read, and the length of each.
inline constexpr std::size_t missing_lines_max = 256;
inline constexpr std::size_t missing_line_max = 512;
/// Processes in the file of one rank: itself, and its data loaders.
inline constexpr std::size_t rank_processes_max = 256;
/// Of a text in a message, besides its bytes.
inline constexpr std::size_t text_overhead = 16;
// A frame is three numbers, and one more in its thread's list.
static_assert(process_frames_max * 16 + process_names_bytes_max +
                  process_threads_max * (256 + missing_line_max) +
                  2 * missing_lines_max * (missing_line_max + text_overhead) <
              frame_max);
static_assert(stack_name_max <= text_max && missing_line_max <= text_max);

// A trie: stacks of any number of processes.
inline constexpr std::size_t trie_nodes_max = 256u << 10;
inline constexpr std::size_t trie_names_bytes_max = 32u << 20;
/// Runs of ranks, of all its nodes together.
inline constexpr std::size_t trie_runs_max = 4u << 20;
/// What a trie comes to in a message; there are two in one, and what is missing.
inline constexpr std::size_t trie_message_max = 3u << 20;
/// Runs of ranks that one line of what is missing tells of in a message.
inline constexpr std::size_t missing_runs_max = 256;
static_assert(2 * trie_message_max +
                  missing_lines_max * (missing_line_max + text_overhead + 8 * missing_runs_max) <
              frame_max - (64u << 10));

// What is shown.
/// Runs of ranks in a frame's label; all of them are in the JSON.
inline constexpr std::size_t label_runs_max = 64;
/// Of a folded file; then it says how many stacks are left out.
inline constexpr std::size_t folded_bytes_max = 256u << 20;
/// A browser moves no more of them smoothly. Of more, the widest are drawn.
inline constexpr std::size_t drawn_frames_max = 50'000;

// Files that are read.
/// xpu_timer keeps the whole text of gdb in its files if it could not read that.
inline constexpr std::size_t stack_file_max = 64u << 20;

} // namespace troupe::limits
