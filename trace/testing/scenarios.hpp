#pragma once

#include "trace/testing/calls.hpp"
#include "trace/testing/fake.hpp"

#include <functional>
#include <string_view>

/// What tests let a program do, with what it saw itself on standard output as JSON. The library of
/// them is loaded privately, as Python loads PyTorch's.
extern "C" int run_scenario(const char* name);

namespace troupe::trace::testing {

/// Waits, ten seconds at most, then gives up with a line.
void until(std::string_view what, const std::function<bool()>& holds);
/// Launches until the library has made a thousand pairs of events, and waits until all are free.
void begin();
/// Waits until so many calls were found to be over since `begin`.
void settle(std::uint64_t ended);

inline cuda_stream stream(std::uintptr_t number) {
  return reinterpret_cast<cuda_stream>(std::uintptr_t{0x100} * number);
}
nccl_communicator communicator(int members, char id = 1);
void launch(cuda_stream in, std::uint64_t duration_ns);
void all_reduce(nccl_communicator of, cuda_stream in, std::size_t floats,
                std::uint64_t duration_ns);

using scenario = void();
scenario collectives, groups, products, copies, capture, errors, pool, threads, million, hang,
    request, forked, served, reused, split, untraced, sampled, progress, stuck;

} // namespace troupe::trace::testing
