#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

/// The training program as the actors of a node see it. They know neither its command line nor its
/// files; the launcher does, and tells them through `training_program`.
namespace troupe::actors {

/// One local rank's place in a generation: all that its environment is made of.
struct assignment {
  generation which;
  std::uint32_t restart_count = 0;
  /// When the failure became known that led to this generation, if one did; by this node's clock.
  std::optional<instant> failed_at;
  local_rank local = 0;
  global_rank rank = 0;
  std::uint32_t local_world_size = 0;
  std::uint32_t world_size = 0;
  std::uint32_t role_rank = 0;       ///< among the workers of all nodes that have this node's role
  std::uint32_t role_world_size = 0; ///< workers of this role
  std::uint32_t group_rank = 0;
  std::uint32_t group_world_size = 0;
  std::uint32_t master_index = 0; ///< as in Member
  std::string address;            ///< of this node, for others
  std::string store_address;
  std::uint16_t store_port = 0;
  bool store_hosted = false; ///< by a node supervisor; else by rank 0's worker
};

/// A place, and the process that is there already: one that an earlier node supervisor had started
/// and that has outlived it.
struct worker_slot {
  assignment place;
  std::optional<ports::survivor> process;
};

/// Why a process failed, from what it left behind.
struct exit_report {
  std::string message;           ///< one line
  std::string traceback;         ///< many; empty if there is nothing beyond `message`
  std::string error_file;        ///< empty if it wrote none
  std::int64_t unix_time_ms = 0; ///< 0: when it ended
  /// Since it showed first: since its error file was written, or since it ended.
  duration ago{};
  /// The kernel has killed processes for lack of memory since it was started.
  bool out_of_memory = false;
  /// The last lines of its stderr, if that went to a file; no longer than limits::log_tail_max.
  std::string log_tail;
};

struct training_program {
  /// The process for one place. May make the directories its files go to.
  std::function<result<ports::process_spec>(const assignment&)> spec;
  /// Why it failed, e.g. from the error file it wrote; called after the process has ended, may read
  /// small files.
  std::function<exit_report(const assignment&, const ports::exit_status&)> explain;
  /// The process of a supervisor that crashed goes on as this one's.
  std::function<void(const assignment&)> adopted = [](const assignment&) {};
  /// Its process is gone, or could not be started after all; may come twice.
  std::function<void(const assignment&)> ended = [](const assignment&) {};
};

} // namespace troupe::actors
