#pragma once

#include <cstddef>
#include <cstdint>

/// What the tracing library knows of CUDA, NCCL and cuBLAS: types and values of their public
/// interfaces, as far as a call must be passed on. Without it the library could be built only where
/// the CUDA Toolkit is; and it must be the same for all versions of these libraries. Handles are
/// opaque, enumerations are `int`. `abi_check.cpp` compares with the real headers (tests/cuda).
namespace troupe::trace::abi {

// The CUDA runtime.
using cuda_error = int; ///< 0: success
using cuda_stream = struct cuda_stream_of_the_runtime*;
struct dim3 {
  unsigned x, y, z;
};
struct launch_config {
  dim3 grid, block;
  std::size_t shared_bytes;
  cuda_stream stream;
  void* attributes;
  unsigned attributes_count;
};
inline constexpr cuda_error cuda_symbol_not_found = 302;

// The CUDA driver: its handles are those of the runtime.
using driver_result = int;
using driver_context = struct driver_context_of_cuda*;
using driver_event = struct driver_event_of_cuda*;
inline constexpr driver_result driver_success = 0;
inline constexpr driver_result driver_not_ready = 600;
inline constexpr unsigned driver_event_default = 0;
inline constexpr int capture_none = 0;
inline constexpr int capture_mode_relaxed = 2;
/// The default stream of a thread; 0 is the default stream of the device, or that of a thread in
/// programs that were compiled so.
inline cuda_stream per_thread_stream() {
  return reinterpret_cast<cuda_stream>(std::uintptr_t{2});
}

// NCCL.
using nccl_result = int;
inline constexpr nccl_result nccl_success = 0;
inline constexpr nccl_result nccl_internal_error = 3;
using nccl_communicator = struct communicator_of_nccl*;
struct nccl_unique_id {
  char internal[128];
};
using nccl_data_type = int;
using nccl_operation = int;

// cuBLAS.
using cublas_status = int;
inline constexpr cublas_status cublas_not_supported = 15;
using cublas_handle = struct handle_of_cublas*;
using cublas_operation = int;
inline constexpr cublas_operation cublas_no_transpose = 0;
inline constexpr int layout_rows = 2, layout_columns = 3, layout_batch_count = 5;
inline constexpr int layout_type = 0;
inline constexpr int matmul_transpose_a = 3;

/// Of CUDA's data types those that matrices are made of.
inline constexpr int data_real_16f = 2, data_real_16bf = 14, data_real_32f = 0, data_real_64f = 1;
inline constexpr int data_real_8i = 3, data_real_32i = 10;
inline constexpr int data_real_8f_e4m3 = 28, data_real_8f_e5m2 = 29;

} // namespace troupe::trace::abi
