#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

/// What is read of another process is its own to write, and may be anything. Here is how much of it
/// is taken at most.
namespace troupe::limits {

/// Threads of one process; torch starts one for each core, several times over.
inline constexpr std::size_t stacks_threads_max = 4'096;
/// Frames of one thread, innermost first; Python itself stops at a thousand.
inline constexpr std::size_t stacks_frames_max = 512;
/// Python frames of a process: deep recursion in one thread is not refused, in all of them it is.
inline constexpr std::size_t stacks_frames_in_all_max = 65'536;
inline constexpr std::size_t stacks_interpreters_max = 64;
/// Of a name of a function and of a file, in characters.
inline constexpr std::size_t stacks_name_max = 1'024;
inline constexpr std::size_t stacks_path_max = 4'096;
/// Which lines belong to which instructions of one function.
inline constexpr std::size_t stacks_line_table_max = 256u << 10;
/// Names of a function's variables that are looked through for one.
inline constexpr std::size_t stacks_variables_max = 256;
/// How often one thread is read again because it changed meanwhile.
inline constexpr int stacks_tries = 3;
/// Memory of the other process kept while one sample of it is read.
inline constexpr std::size_t stacks_pages_max = 16'384;
/// Mappings of one process.
inline constexpr std::size_t stacks_mappings_max = 65'536;
/// What is copied of the stack of a thread while that is stopped.
inline constexpr std::size_t stacks_copied_max = 256u << 10;
/// How long a thread may take to stop before it is told as one that does not.
inline constexpr auto stacks_stop_within = 100ms;
/// And all of one process together: threads that do not stop often are the same way held up.
inline constexpr auto stacks_stop_in_all_within = 300ms;
/// Symbols of one file that are kept.
inline constexpr std::size_t stacks_symbols_max = 4u << 20;
/// Child processes that are named, file descriptors and bytes of a table of sockets looked at.
inline constexpr std::size_t stacks_children_max = 256;
inline constexpr std::size_t stacks_descriptors_max = 4'096;
inline constexpr std::size_t stacks_sockets_bytes_max = 4u << 20;
/// The kernel's answers about sockets: of one packet, and how long one may take.
inline constexpr std::size_t stacks_netlink_packet_max = 64u << 10;
inline constexpr long stacks_netlink_within_us = 200'000;
/// With less left than this, a file system is full.
inline constexpr std::uint64_t stacks_full_below = 1u << 20;
/// What is read of a file of the kernel.
inline constexpr std::size_t stacks_kernel_text_max = 16u << 20;

} // namespace troupe::limits
