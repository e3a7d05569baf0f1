#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"
#include "runtime/os/process/local_services.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// What the system allows a process, and the launcher to do with processes.
namespace troupe::launch::doctor {

/// Nothing: no limit.
using limit = std::optional<std::uint64_t>;

struct limits_facts {
  std::uint32_t workers = 1;
  os::open_files_limit open_files;
  std::uint64_t open_files_needed = 0;
  /// What the launcher would say of it; empty: they suffice.
  std::string too_few_open_files;
  /// RLIMIT_NPROC, and what is left of pids.max of the control group.
  limit processes, pids_left;
  bool above_process_limit = false; ///< root's processes are not counted
  limit core, file_size, locked;
  bool has_rdma = false; ///< /dev/infiniband
};
limits_facts look_at_limits(const launcher_options& o, const os::open_files_limit& open_files);
findings judge(const limits_facts& seen);

struct process_facts {
  std::string no_subreaper;     ///< why orphans of workers do not come to the launcher
  std::string no_children;      ///< why the kernel does not list children
  std::string no_control_group; ///< why workers get no control group of their own
};
process_facts look_at_processes();
findings judge(const process_facts& seen);

} // namespace troupe::launch::doctor
