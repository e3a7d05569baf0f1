// The headers of CUDA, cuBLAS and NCCL say the same as trace/abi.hpp and trace/signatures.hpp: a
// call is passed on with the arguments that it came with. Compiled by tests/cuda, never run.

#include "trace/core/operation.hpp"
#include "trace/signatures.hpp"

#include <cublasLt.h>
#include <cublas_api.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

namespace {

using namespace troupe::trace;

/// Passed in the same registers: pointers, whole numbers of a size, classes of a size.
template<class Real, class Ours>
constexpr bool passed_alike = sizeof(Real) == sizeof(Ours) &&
                              (std::is_pointer_v<Real> == std::is_pointer_v<Ours>)&&(
                                  std::is_class_v<Real> ==
                                  std::is_class_v<Ours>)&&(std::is_floating_point_v<Real> ==
                                                           std::is_floating_point_v<Ours>);

template<class Real, class Ours>
struct compared : std::false_type {};
template<class RealAnswer, class... Real, class OurAnswer, class... Ours>
struct compared<RealAnswer(Real...), OurAnswer(Ours...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Real) == sizeof...(Ours))
      return passed_alike<RealAnswer, OurAnswer> && (passed_alike<Real, Ours> && ...);
    else
      return false;
  }();
};
template<class Real, class Ours>
constexpr bool same = compared<Real, Ours>::value;

// In C++ there are overloads of some, which are not in the library: a pointer takes the one that
// is.
using copy = cudaError_t(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
[[maybe_unused]] constexpr copy* real_copy = &::cudaMemcpyAsync;
static_assert(same<copy, signatures::cudaMemcpyAsync>);
static_assert(same<decltype(::cudaMemsetAsync), signatures::cudaMemsetAsync>);
using launch = cudaError_t(const void*, ::dim3, ::dim3, void**, size_t, cudaStream_t);
[[maybe_unused]] constexpr launch* real_launch = &::cudaLaunchKernel;
static_assert(same<launch, signatures::cudaLaunchKernel>);
static_assert(sizeof(::dim3) == sizeof(abi::dim3) && std::is_trivially_copyable_v<::dim3>);
static_assert(cudaSuccess == 0 && CUDA_SUCCESS == abi::driver_success);
static_assert(cudaErrorSharedObjectSymbolNotFound == abi::cuda_symbol_not_found);
static_assert(CUDA_ERROR_NOT_READY == abi::driver_not_ready);
static_assert(CU_EVENT_DEFAULT == abi::driver_event_default);
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == abi::capture_none);
static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == abi::capture_mode_relaxed);
static_assert(cudaMemcpyHostToDevice == static_cast<int>(copy_kind::to_device));
static_assert(cudaMemcpyDeviceToHost == static_cast<int>(copy_kind::to_host));
static_assert(cudaMemcpyDeviceToDevice == static_cast<int>(copy_kind::on_device));
static_assert(cudaMemcpyDefault == static_cast<int>(copy_kind::by_address));
#if CUDART_VERSION >= 11080
static_assert(sizeof(cudaLaunchConfig_t) == sizeof(abi::launch_config));
static_assert(offsetof(cudaLaunchConfig_t, stream) == offsetof(abi::launch_config, stream));
#endif

using gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                            int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                            cublasGemmAlgo_t);
[[maybe_unused]] constexpr gemm* real_gemm = &::cublasGemmEx;
static_assert(same<gemm, signatures::cublasGemmEx>);
using batched = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                               const void*, const void*, cudaDataType, int, long long, const void*,
                               cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                               long long, int, cublasComputeType_t, cublasGemmAlgo_t);
[[maybe_unused]] constexpr batched* real_batched = &::cublasGemmStridedBatchedEx;
static_assert(same<batched, signatures::cublasGemmStridedBatchedEx>);
static_assert(same<decltype(::cublasSgemm_v2), signatures::cublasSgemm>);
static_assert(same<decltype(::cublasSgemmStridedBatched), signatures::cublasSgemmStridedBatched>);
static_assert(same<decltype(::cublasLtMatmul), signatures::cublasLtMatmul>);
static_assert(CUBLAS_STATUS_SUCCESS == 0 &&
              CUBLAS_STATUS_NOT_SUPPORTED == abi::cublas_not_supported);
static_assert(CUBLAS_OP_N == abi::cublas_no_transpose);
static_assert(CUBLASLT_MATRIX_LAYOUT_TYPE == abi::layout_type);
static_assert(CUBLASLT_MATRIX_LAYOUT_ROWS == abi::layout_rows);
static_assert(CUBLASLT_MATRIX_LAYOUT_COLS == abi::layout_columns);
static_assert(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == abi::layout_batch_count);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == abi::matmul_transpose_a);

static_assert(same<decltype(::ncclCommInitRank), signatures::ncclCommInitRank>);
static_assert(same<decltype(::ncclCommDestroy), signatures::ncclCommDestroy>);
static_assert(same<decltype(::ncclCommAbort), signatures::ncclCommDestroy>);
static_assert(same<decltype(::ncclAllReduce), signatures::ncclAllReduce>);
static_assert(same<decltype(::ncclReduce), signatures::ncclReduce>);
static_assert(same<decltype(::ncclBroadcast), signatures::ncclBroadcast>);
static_assert(same<decltype(::ncclBcast), signatures::ncclBcast>);
static_assert(same<decltype(::ncclAllGather), signatures::ncclAllGather>);
static_assert(same<decltype(::ncclReduceScatter), signatures::ncclReduceScatter>);
static_assert(same<decltype(::ncclSend), signatures::ncclSend>);
static_assert(same<decltype(::ncclRecv), signatures::ncclRecv>);
static_assert(same<decltype(::ncclGroupStart), signatures::ncclGroupStart>);
static_assert(same<decltype(::ncclGroupEnd), signatures::ncclGroupEnd>);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0)
static_assert(same<decltype(::ncclCommInitRankConfig), signatures::ncclCommInitRankConfig>);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
static_assert(same<decltype(::ncclCommSplit), signatures::ncclCommSplit>);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
static_assert(same<decltype(::ncclCommInitRankScalable), signatures::ncclCommInitRankScalable>);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
static_assert(same<decltype(::ncclCommShrink), signatures::ncclCommShrink>);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(same<decltype(::ncclAlltoAll), signatures::ncclAlltoAll>);
#endif
static_assert(sizeof(ncclUniqueId) == sizeof(abi::nccl_unique_id));
static_assert(ncclSuccess == abi::nccl_success && ncclInternalError == abi::nccl_internal_error);
static_assert(ncclInt8 == 0 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 &&
              ncclFloat64 == 8 && ncclBfloat16 == 9);
static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_R_16F == 2 && CUDA_R_8I == 3 &&
              CUDA_R_8U == 8 && CUDA_R_32I == 10 && CUDA_R_16BF == 14);

} // namespace
