#include "launch/wiring/store_life.hpp"

#include "launch/keeper/kept_store_host.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"

#include <malloc.h>

#include <unistd.h>

namespace troupe::launch {

namespace {

/// A store that has held much holds little again once it is deleted: as values come and go, the C
/// library would otherwise keep ever larger ones for the next.
void give_memory_back() {
  constexpr int threshold = 256 << 10;
  ::mallopt(M_MMAP_THRESHOLD, threshold);
  ::mallopt(M_TRIM_THRESHOLD, 4 * threshold);
}

} // namespace

void serve_store(const launch_facts& facts, const store_order& order, const os::unique_fd& answer) {
  give_memory_back();
  // Of these a store has no use: its open files are for its clients.
  if (facts.channel.descriptor() >= 0)
    ::close(facts.channel.descriptor());
  for (const auto& inherited : {facts.memory.descriptors(), facts.memory.descriptors_for_others()})
    for (const auto& of_one_rank : inherited)
      for (const int descriptor : of_one_rank)
        ::close(descriptor);
  for (const int descriptor : facts.pages.descriptors())
    ::close(descriptor);
  const auto log =
      open_log(facts.options.common, origin_of(facts), {}, limits::store_log_queue_max);
  os::store_host_options options;
  if (log)
    options.log = (*log)->sink();
  os::asio_store_host host(options);
  for (const auto store = open_as_ordered(order, answer, host); store;)
    ::pause();
}

} // namespace troupe::launch
