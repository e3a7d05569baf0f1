#include "launch/doctor/memory.hpp"

#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>

namespace troupe::launch::doctor {

namespace {

constexpr std::uint64_t MiB = 1u << 20;

/// A process that has imported torch and holds no tensor takes so much.
constexpr auto memory_of_worker = 512 * MiB;
/// Below this the semaphores and queues of one DataLoader, or NCCL's rings between two local ranks,
/// do not fit.
constexpr auto shared_least = 16 * MiB;
/// What a DataLoader with some workers and NCCL together hold there for each rank. Docker's default
/// is 64 MiB for all of them.
constexpr auto shared_of_worker = 128 * MiB;

constexpr auto enlarge = "enlarge it: docker run --shm-size=8g (or --ipc=host); in Kubernetes an "
                         "emptyDir with medium Memory at /dev/shm; on a machine mount -o "
                         "remount,size=8g /dev/shm";

} // namespace

finding judge(const memory_facts& seen) {
  finding f{"memory"};
  if (!seen.room) {
    f.how = grade::note;
    f.found = "how much may be used is not known: " + seen.bound;
    return f;
  }
  f.found = fmt::format("{} may still be used ({})", os::in_words(*seen.room), seen.bound);
  if (*seen.room >= seen.workers * memory_of_worker)
    return f;
  f.how = grade::warning;
  f.costs = fmt::format("{} worker{} with torch take {} before the first tensor; the kernel kills "
                        "what goes beyond the bound",
                        seen.workers, seen.workers == 1 ? "" : "s",
                        os::in_words(seen.workers * memory_of_worker));
  f.remedy = "free memory, raise the bound, or lower --nproc-per-node";
  return f;
}

finding judge(const shared_mount_facts& seen) {
  finding f{"/dev/shm"};
  constexpr auto users = "DataLoader workers and NCCL share memory there (Troupe's own checkpoint "
                         "memory is not there)";
  if (!seen.why_not.empty()) {
    f.how = grade::error;
    f.found = "it cannot be used: " + seen.why_not;
    f.costs = fmt::format("{}: they fail at their start", users);
    f.remedy = "mount a tmpfs there: mount -t tmpfs -o size=8g,mode=1777 tmpfs /dev/shm";
    return f;
  }
  f.found = fmt::format("{} of {} are free", os::in_words(seen.available), os::in_words(seen.size));
  if (seen.available < shared_least) {
    f.how = grade::error;
    f.costs = fmt::format("{}: they end with a bus error or \"No space left on device\"", users);
    f.remedy = enlarge;
  } else if (seen.available < seen.workers * shared_of_worker) {
    f.how = grade::warning;
    f.costs = fmt::format("{}: {} for each of {} worker{} may end them with a bus error", users,
                          os::in_words(seen.available / seen.workers), seen.workers,
                          seen.workers == 1 ? "" : "s");
    f.remedy = enlarge;
  } else if (seen.room && seen.available > *seen.room) {
    f.how = grade::note;
    f.costs = fmt::format("what is stored there is memory: beyond {} processes are killed before "
                          "it is full",
                          os::in_words(*seen.room));
  }
  return f;
}

findings judge(const snapshot_facts& seen) {
  finding memory{"checkpoint memory", grade::ok, "memory without a name can be shared (memfd)"};
  if (!seen.no_memory.empty())
    memory = {memory.subject, grade::warning, seen.no_memory,
              "troupe.checkpoint keeps no image in memory: each save waits for the disk",
              "let the seccomp profile of the container allow memfd_create and eventfd"};
  finding watch{"copy-on-write", grade::ok, "memory can be watched for writes (userfaultfd)"};
  if (!seen.no_copy_on_write.empty())
    watch = {watch.subject, grade::note, seen.no_copy_on_write,
             "copy_on_write=True is refused: a save returns after the copy, as without it",
             "sysctl vm.unprivileged_userfaultfd=1, where it is wanted"};
  finding ring{"io_uring", grade::ok, "the kernel's queue takes writes"};
  if (!seen.no_ring.empty())
    ring = {ring.subject, grade::note, seen.no_ring,
            "checkpoints are written one block after the other: a fast disk is not used fully",
            "sysctl kernel.io_uring_disabled=0, and a seccomp profile that allows io_uring_setup"};
  return {memory, watch, ring};
}

} // namespace troupe::launch::doctor
