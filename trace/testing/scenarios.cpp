#include "trace/testing/scenarios.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace troupe::trace::testing {

namespace {

std::uint64_t ended_before = 0;

struct named {
  std::string_view name;
  scenario* run;
};
constexpr named all[] = {
    {"collectives", collectives},
    {"groups", groups},
    {"products", products},
    {"copies", copies},
    {"capture", capture},
    {"errors", errors},
    {"pool", pool},
    {"threads", threads},
    {"million", million},
    {"hang", hang},
    {"request", request},
    {"forked", forked},
    {"served", served},
    {"reused", reused},
    {"split", split},
    {"untraced", untraced},
    {"sampled", sampled},
    {"progress", progress},
    {"stuck", stuck},
};

} // namespace

void until(std::string_view what, const std::function<bool()>& holds) {
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > last) {
      std::fprintf(stderr, "not within 30 s: %.*s\n", static_cast<int>(what.size()), what.data());
      std::_Exit(3);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void begin() {
  cudaSetDevice(0);
  // More are made when few are left.
  until("events are made", [] {
    // Quickly: while the clock stands, these calls hang.
    for (int n = 0; n < 64; ++n)
      launch(stream(9), 1000);
    return fake_counted().events_made >= 2 * 1024;
  });
  fake_advance(1'000'000'000);
  // All that were timed have two records.
  until("the first calls are over", [] {
    const auto counts = fake_counted();
    return counts.ended == counts.records / 2;
  });
  ended_before = fake_counted().ended;
}

void settle(std::uint64_t ended) {
  until("all calls are over", [ended] { return fake_counted().ended >= ended_before + ended; });
}

nccl_communicator communicator(int members, char id) {
  nccl_unique_id unique{};
  unique.internal[0] = id;
  nccl_communicator made = nullptr;
  if (ncclCommInitRank(&made, members, unique, 0) != 0)
    std::abort();
  return made;
}

void launch(cuda_stream in, std::uint64_t duration_ns) {
  static const char kernel = 0;
  fake_duration(duration_ns);
  cudaLaunchKernel(&kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, in);
}

void all_reduce(nccl_communicator of, cuda_stream in, std::size_t floats,
                std::uint64_t duration_ns) {
  fake_duration(duration_ns);
  ncclAllReduce(nullptr, nullptr, floats, 7, 0, of, in);
}

} // namespace troupe::trace::testing

int run_scenario(const char* name) {
  for (const auto& one : troupe::trace::testing::all)
    if (one.name == name) {
      one.run();
      return 0;
    }
  std::fprintf(stderr, "no scenario is called '%s'\n", name);
  return 2;
}
