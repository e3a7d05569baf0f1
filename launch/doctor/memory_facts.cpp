#include "launch/doctor/memory.hpp"
#include "runtime/os/memory/memory_room.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"
#include "runtime/os/memory/write_watch.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/storage/ring_queue.hpp"

#include <cerrno>

#include <sys/statvfs.h>
#include <unistd.h>

/// What the judges of memory.hpp are told: each question is asked as the product asks it.
namespace troupe::launch::doctor {

memory_facts look_at_memory(const launcher_options& o) {
  memory_facts seen;
  seen.workers = o.processes_per_node;
  if (const auto room = os::find_memory_room()) {
    seen.room = room->bytes;
    seen.bound = room->bound;
  } else {
    seen.bound = room.error().what;
  }
  return seen;
}

shared_mount_facts look_at_shared_mount(const launcher_options& o, const machine_facts& machine) {
  constexpr auto where = "/dev/shm";
  shared_mount_facts seen;
  seen.workers = o.processes_per_node;
  seen.gpus = machine.gpus;
  struct statvfs about {};
  if (::statvfs(where, &about) != 0 || ::access(where, W_OK | X_OK) != 0) {
    seen.why_not = os::system_message(errno);
    return seen;
  }
  seen.size = std::uint64_t{about.f_blocks} * about.f_frsize;
  seen.available = std::uint64_t{about.f_bavail} * about.f_frsize;
  seen.room = look_at_memory(o).room;
  return seen;
}

snapshot_facts look_at_snapshots() {
  constexpr auto some_bytes = 4'096;
  constexpr auto some_writes = 4;
  snapshot_facts seen;
  if (const auto made = os::shared_memory::create("troupe-doctor", some_bytes); !made)
    seen.no_memory = made.error().what;
  else if (const auto wakes = os::wake_event::create(); !wakes)
    seen.no_memory = wakes.error().what;
  if (const auto watch = os::write_watch::open(); !watch)
    seen.no_copy_on_write = watch.error().what;
  std::string why_not;
  if (!os::ring_queue(some_writes, why_not))
    seen.no_ring = why_not;
  return seen;
}

} // namespace troupe::launch::doctor
