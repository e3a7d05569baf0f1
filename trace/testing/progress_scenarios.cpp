#include "trace/testing/scenarios.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// What is said in the page of progress.

namespace troupe::trace::testing {

void progress() {
  begin();
  const auto of = communicator(8);
  all_reduce(of, stream(1), 1024, 1000); // nothing to say it to yet
  // As Python loads it.
  void* worker = dlopen(std::getenv("FAKE_WORKER"), RTLD_NOW | RTLD_LOCAL);
  if (!worker)
    std::abort();
  for (int n = 0; n < 10; ++n)
    all_reduce(of, stream(1), 1024, 1000);
  fake_capture(stream(2), true);
  all_reduce(of, stream(2), 1024, 1000); // not run now: neither entered nor left
  fake_capture(stream(2), false);
  fake_advance(1'000'000);
  settle(11);
  fake_next_result(3);
  all_reduce(of, stream(1), 1024, 1000); // failed: entered, and left at once
  nccl_communicator part = nullptr;
  ncclCommSplit(of, 1, 0, &part, nullptr);
  all_reduce(part, stream(1), 1024, 1000);
  fake_hang(stream(1), true);
  ncclBroadcast(nullptr, nullptr, 100, 7, 0, of, stream(1)); // is not over
  auto* const counted = reinterpret_cast<void (*)(std::size_t, std::uint64_t*, std::uint64_t*)>(
      dlsym(worker, "fake_worker_counted"));
  std::uint64_t entered = 0, left = 0;
  until("all but one are left", [&] {
    counted(0, &entered, &left);
    return left + 1 >= entered;
  });
  reinterpret_cast<void (*)()>(dlsym(worker, "fake_worker_print"))();
}

} // namespace troupe::trace::testing
