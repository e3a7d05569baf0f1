// cuBLAS as the probe sees it, for tests: makes the product once for each device in turn.
// FAKE_WRONG: the device that makes one entry of it wrong.

#include "runtime/os/probe/cuda_abi.hpp"
#include "runtime/os/probe/testing/fake_cuda.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

using namespace troupe::os::cuda;

namespace {

/// -2 to 2, by the bits that bfloat16 and half have for them.
float value_of(std::uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const auto size = bits & 0x7fff;
  return size == 0 ? 0 : size == 0x4000 ? 2 * sign : sign;
}

std::vector<float> values(const void* matrix, std::size_t count) {
  std::vector<std::uint16_t> bits(count);
  std::memcpy(bits.data(), matrix, count * sizeof bits[0]);
  std::vector<float> all;
  for (const auto b : bits)
    all.push_back(value_of(b));
  return all;
}

} // namespace

extern "C" {

int cublasCreate_v2(blas_handle* made) {
  static int one;
  *made = reinterpret_cast<blas_handle>(&one);
  return blas_success;
}

int cublasDestroy_v2(blas_handle) {
  return blas_success;
}

int cublasGemmEx(blas_handle, int, int, int rows, int, int, const void*, const void* left, int type,
                 int, const void* right, int other_type, int, const void*, void* product,
                 int product_type, int, int, int) {
  constexpr int not_supported = 15;
  const bool is_new = fake_current_device() % 2 == 0;
  if (type != (is_new ? data_bfloat16 : data_half) || other_type != type ||
      product_type != data_float)
    return not_supported;
  static int made_on = -1;
  if (made_on == fake_current_device())
    return blas_success;
  made_on = fake_current_device();
  const auto n = static_cast<std::size_t>(rows);
  const auto a = values(left, n * n), b = values(right, n * n);
  auto* c = static_cast<float*>(product);
  std::memset(c, 0, n * n * sizeof *c);
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t row = 0; row < n; ++row)
        c[column * n + row] += a[k * n + row] * b[column * n + k];
  if (fake_setting("FAKE_WRONG") == fake_current_device())
    c[n * n / 3] += 1;
  return blas_success;
}

} // extern "C"
