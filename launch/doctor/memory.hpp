#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// Memory: what there is of it, what processes can share, and what may be done with it.
namespace troupe::launch::doctor {

struct memory_facts {
  std::uint32_t workers = 1;
  /// What this process may still use, and what sets that bound; nothing: not known, and why.
  std::optional<std::uint64_t> room;
  std::string bound;
};
memory_facts look_at_memory(const launcher_options& o);
finding judge(const memory_facts& seen);

/// The file system that shm_open(3) uses.
struct shared_mount_facts {
  std::uint32_t workers = 1;
  std::uint32_t gpus = 0;
  /// Empty if it can be used.
  std::string why_not;
  std::uint64_t size = 0, available = 0;
  std::optional<std::uint64_t> room;
};
shared_mount_facts look_at_shared_mount(const launcher_options& o, const machine_facts& machine);
finding judge(const shared_mount_facts& seen);

/// What troupe.checkpoint needs of the system.
struct snapshot_facts {
  std::string no_memory;        ///< why shared memory without a name cannot be made; empty: it can
  std::string no_copy_on_write; ///< why memory cannot be watched for writes; empty: it can
  std::string no_ring;          ///< why there is no io_uring; empty: there is
};
snapshot_facts look_at_snapshots();
findings judge(const snapshot_facts& seen);

} // namespace troupe::launch::doctor
