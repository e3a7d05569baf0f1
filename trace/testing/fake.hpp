#pragma once

#include <cstddef>
#include <cstdint>

/// CUDA, NCCL and cuBLAS without a device: libraries of the real ones' names, whose streams are
/// queues of times on a clock that only the test moves. So durations are exact, a hang lasts as
/// long as a test wants, and what the tracing library must not do is counted.
extern "C" {

/// What has happened, since the start.
struct fake_counts {
  std::uint64_t events_made, records, queries;
  std::uint64_t ended;              ///< answers that an event is over
  std::uint64_t records_in_capture; ///< each would have broken a graph
  std::uint64_t wrong_context;      ///< an event was asked for from another context
  std::uint64_t strict_threads;     ///< that asked for events and were not exempt from captures
  std::uint64_t launches, copies, collectives, products;
};
fake_counts fake_counted();

/// Moves the clock.
void fake_advance(std::uint64_t ns);
/// How long what this thread launches from now on takes.
void fake_duration(std::uint64_t ns);
/// Nothing that is launched in the stream from now on ends, until it is false.
void fake_hang(void* stream, bool hung);
/// The stream records a graph.
void fake_capture(void* stream, bool capturing);
/// Questions for events are not answered any more: the driver is stuck.
void fake_block_queries();
/// This many of the next events fail to be recorded.
void fake_fail_records(std::uint64_t count);
/// What the next call of this thread into runtime, NCCL or cuBLAS returns; then 0 again.
void fake_next_result(int result);
int fake_take_result();

// Between the fake libraries.
void fake_launch(void* stream);
void fake_count_copy();
void fake_count_collective();
void fake_count_product();
}
