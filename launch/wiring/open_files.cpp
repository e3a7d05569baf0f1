#include "launch/wiring/open_files.hpp"

#include "launch/worker/checkpoint_memory.hpp"
#include "launch/worker/progress_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

namespace {

/// Streams, signals, links, the journal, engine threads, and what is open for a moment while a
/// process is started. A job of one worker has 31 open.
constexpr std::uint64_t open_anyway = 56;
/// Log files that are read for the console, two streams, each with its filtered lines; and its
/// connection.
constexpr std::uint64_t open_per_worker = 5;

} // namespace

std::uint64_t open_files_needed(const launcher_options& o) {
  const std::uint64_t workers = o.processes_per_node;
  const auto with_memory = std::min<std::uint64_t>(workers, checkpoint_memory::local_ranks_max);
  return open_anyway + workers * open_per_worker +
         with_memory * (checkpoint_memory::open_files_per_local_rank(o.may_have_others()) +
                        progress_memory::open_files_per_local_rank);
}

std::optional<std::string> open_files_validation_error(const launcher_options& o,
                                                       std::uint64_t allowed) {
  const auto needed = open_files_needed(o);
  if (allowed >= needed)
    return std::nullopt;
  return fmt::format(
      "{} worker{} on this node need{} {} open files (memory for checkpoints takes {} for each), "
      "and the hard limit allows {}: raise it (ulimit -Hn {}; --ulimit nofile={} for docker; "
      "LimitNOFILE={} for systemd), or lower --nproc-per-node",
      o.processes_per_node, o.processes_per_node == 1 ? "" : "s",
      o.processes_per_node == 1 ? "s" : "", needed,
      checkpoint_memory::open_files_per_local_rank(o.may_have_others()), allowed, needed, needed,
      needed);
}

} // namespace troupe::launch
