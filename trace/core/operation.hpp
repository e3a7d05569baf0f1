#pragma once

#include "diag/progress/page.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::trace {

/// What a call asks of the device, as far as it is measured.
enum class operation_class : std::uint8_t { collective, gemm, copy, launch };
inline constexpr std::size_t operation_classes = 4;
const char* name_of(operation_class what);

/// Element types, as PyTorch names them.
enum class element : std::uint8_t {
  unknown,
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2,
  mixed, ///< several in one group of calls
};
const char* name_of(element type);
std::size_t bytes_of(element type);
/// NCCL's and CUDA's numbers of them. An unknown number is `unknown`.
element element_of_nccl(int type);
element element_of_cuda(int type);

/// Which way a copy goes, by the CUDA runtime's number; `memory_set` is ours.
enum class copy_kind : std::uint8_t {
  host_to_host,
  to_device,
  to_host,
  on_device,
  by_address,
  memory_set
};
const char* name_of(copy_kind kind);

/// One call, or the calls of one group: what it is, not when.
struct operation {
  operation_class what{};
  /// collective: diag::collective; copy: copy_kind.
  std::uint8_t kind = 0;
  element type = element::unknown;
  std::uint32_t members = 0;      ///< collective: ranks of the communicator
  std::uint32_t page_row = 0;     ///< collective: of the page of progress, plus 1; 0: none
  std::uint64_t communicator = 0; ///< collective: the communicator's name; 0: unknown
  std::uint32_t calls = 0;        ///< of a group
  std::uint64_t sequence = 0;     ///< collective: which of its communicator, from 1
  std::uint64_t bytes = 0;        ///< collective: the size that nccl-tests would print
  std::uint64_t flop = 0;         ///< gemm
  std::uint32_t m = 0, n = 0, k = 0, batch = 0;
  const void* function = nullptr; ///< launch

  diag::collective collective() const { return static_cast<diag::collective>(kind); }
};

/// The sizes that nccl-tests reckons with. `count` is the argument of the call: all_gather is told
/// what a rank sends, reduce_scatter what it receives; the size is that of the larger buffer.
std::uint64_t collective_bytes(diag::collective kind, std::uint64_t count, element type,
                               std::uint32_t members);

/// What nccl-tests multiplies size by time with, so that the result is comparable with the speed of
/// the hardware whatever the number of ranks: "bus bandwidth".
double bus_factor(diag::collective kind, std::uint32_t members);

/// Levels of sizes, so that the number of sets of labels is bounded: 1 KiB and less, then a factor
/// of two each; the last has no upper bound.
inline constexpr std::uint32_t size_levels = 20;
std::uint32_t size_level(std::uint64_t bytes);
/// 0: none.
std::uint64_t size_level_max(std::uint32_t level);
/// Levels of work: a million and less, then a factor of ten each; the last has no upper bound.
inline constexpr std::uint32_t flop_levels = 10;
std::uint32_t flop_level(std::uint64_t flop);
std::uint64_t flop_level_max(std::uint32_t level);

} // namespace troupe::trace
