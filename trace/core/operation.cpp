#include "trace/core/operation.hpp"

#include <array>

namespace troupe::trace {

const char* name_of(operation_class what) {
  static constexpr std::array names{"collective", "gemm", "copy", "launch"};
  static_assert(names.size() == operation_classes);
  return names[static_cast<std::size_t>(what)];
}

namespace {

struct element_row {
  const char* name;
  std::size_t bytes;
};
constexpr std::array<element_row, 14> elements{{
    {"unknown", 0},
    {"int8", 1},
    {"uint8", 1},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"float8_e4m3", 1},
    {"float8_e5m2", 1},
    {"mixed", 0},
}};
static_assert(elements.size() == static_cast<std::size_t>(element::mixed) + 1);

} // namespace

const char* name_of(element type) {
  return elements[static_cast<std::size_t>(type)].name;
}

std::size_t bytes_of(element type) {
  return elements[static_cast<std::size_t>(type)].bytes;
}

element element_of_nccl(int type) {
  // ncclDataType_t, in order.
  static constexpr std::array types{
      element::int8,    element::uint8,    element::int32,       element::uint32,
      element::int64,   element::uint64,   element::float16,     element::float32,
      element::float64, element::bfloat16, element::float8_e4m3, element::float8_e5m2,
  };
  const auto at = static_cast<std::size_t>(type);
  return type >= 0 && at < types.size() ? types[at] : element::unknown;
}

element element_of_cuda(int type) {
  // cudaDataType_t, the real ones.
  switch (type) {
  case 0:
    return element::float32;
  case 1:
    return element::float64;
  case 2:
    return element::float16;
  case 3:
    return element::int8;
  case 8:
    return element::uint8;
  case 10:
    return element::int32;
  case 14:
    return element::bfloat16;
  case 28:
    return element::float8_e4m3;
  case 29:
    return element::float8_e5m2;
  default:
    return element::unknown;
  }
}

const char* name_of(copy_kind kind) {
  static constexpr std::array names{"host_to_host",     "host_to_device", "device_to_host",
                                    "device_to_device", "by_address",     "memset"};
  const auto at = static_cast<std::size_t>(kind);
  return at < names.size() ? names[at] : "unknown";
}

std::uint64_t collective_bytes(diag::collective kind, std::uint64_t count, element type,
                               std::uint32_t members) {
  const auto bytes = count * bytes_of(type);
  switch (kind) {
  case diag::collective::all_gather:
  case diag::collective::reduce_scatter:
  case diag::collective::all_to_all:
    return bytes * members;
  default:
    return bytes;
  }
}

double bus_factor(diag::collective kind, std::uint32_t members) {
  if (members == 0)
    return 1;
  const double n = members;
  switch (kind) {
  case diag::collective::all_reduce:
    return 2 * (n - 1) / n;
  case diag::collective::all_gather:
  case diag::collective::reduce_scatter:
  case diag::collective::all_to_all:
    return (n - 1) / n;
  default:
    return 1;
  }
}

std::uint32_t size_level(std::uint64_t bytes) {
  std::uint32_t level = 0;
  while (level + 1 < size_levels && bytes > (std::uint64_t{1024} << level))
    ++level;
  return level;
}

std::uint64_t size_level_max(std::uint32_t level) {
  return level + 1 < size_levels ? std::uint64_t{1024} << level : 0;
}

std::uint32_t flop_level(std::uint64_t flop) {
  std::uint32_t level = 0;
  for (std::uint64_t most = 1'000'000; level + 1 < flop_levels && flop > most; most *= 10)
    ++level;
  return level;
}

std::uint64_t flop_level_max(std::uint32_t level) {
  if (level + 1 >= flop_levels)
    return 0;
  std::uint64_t most = 1'000'000;
  for (std::uint32_t l = 0; l < level; ++l)
    most *= 10;
  return most;
}

} // namespace troupe::trace
