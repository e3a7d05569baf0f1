#include "launch/worker/shown_progress.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <sys/mman.h>

namespace troupe::launch {

namespace {
constexpr std::size_t streams = 2;
constexpr std::size_t shared_bytes = streams * limits::local_world_max * sizeof(std::uint64_t);
} // namespace

shown_progress::shown_progress() {
  void* memory =
      ::mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  invariant(memory != MAP_FAILED, "no memory to share");
  // Fresh pages are zero, and so are the counters.
  counters_ = {static_cast<counter*>(memory), [](counter* c) { ::munmap(c, shared_bytes); }};
}

std::shared_ptr<std::atomic<std::uint64_t>> shown_progress::of(local_rank local,
                                                               ports::console_stream stream) const {
  invariant(local < limits::local_world_max, "there are not so many workers");
  return {counters_, counters_.get() + streams * local + static_cast<std::size_t>(stream)};
}

} // namespace troupe::launch
