#include "worker/troupe_ckpt.h"

#include <algorithm>

namespace {

constexpr int64_t unknown = -1;

struct description {
  int32_t dtype = 0, layout = 0, device = 0, device_index = 0;
  int64_t dimensions = 0, offset = 0, storage_bytes = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;

  /// The layout comes first: a sparse tensor has neither strides nor a storage.
  bool read(const troupe_tensor_functions& by, void* tensor) {
    if (by.layout(tensor, &layout) != 0 || by.dtype(tensor, &dtype) != 0 ||
        by.device_type(tensor, &device) != 0 || by.device_index(tensor, &device_index) != 0)
      return false;
    return layout != by.strided ||
           (by.dimensions(tensor, &dimensions) == 0 && by.offset(tensor, &offset) == 0 &&
            by.storage_bytes(tensor, &storage_bytes) == 0 && by.sizes(tensor, &sizes) == 0 &&
            by.strides(tensor, &strides) == 0);
  }
  /// Each of the four has 16 bits.
  int64_t kind() const {
    const auto bits = [](int32_t value) {
      return static_cast<uint64_t>(static_cast<uint16_t>(value));
    };
    return static_cast<int64_t>(bits(dtype) << 48 | bits(layout) << 32 | bits(device) << 16 |
                                bits(device_index));
  }
};

} // namespace

int64_t troupe_describe_tensors(const troupe_tensor_functions* by, void* const* tensors,
                                size_t count, int64_t* kinds, int64_t* numbers, size_t room) {
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    // A tensor of PyTorch's C++ is one pointer to what describes it.
    description d;
    if (!d.read(*by, const_cast<void**>(tensors + i)) || d.dimensions < 0)
      return unknown;
    kinds[i] = d.kind();
    const auto dimensions = static_cast<size_t>(d.dimensions);
    const auto begin = used;
    used += 3 + 2 * dimensions;
    if (used > room)
      continue; // only counted
    auto* to = numbers + begin;
    *to++ = d.dimensions;
    *to++ = d.offset;
    *to++ = d.storage_bytes;
    to = std::copy_n(d.sizes, dimensions, to);
    std::copy_n(d.strides, dimensions, to);
  }
  return static_cast<int64_t>(used);
}

void troupe_in_order(const uint64_t* values, const uint32_t* order, const uint64_t* more,
                     size_t count, uint64_t* to) {
  for (size_t i = 0; i < count; ++i)
    to[i] = values[order[i]] + (more != nullptr ? more[i] : 0);
}
