#include "trace/abi.hpp"
#include "trace/process/hooks.hpp"
#include "trace/process/real.hpp"
#include "trace/process/tracer.hpp"
#include "trace/signatures.hpp"

#include <type_traits>

// cuBLAS's matrix products, under their own names.

using namespace troupe::trace;

namespace {

constexpr const char* library = "libcublas.so";
constexpr const char* light_library = "libcublasLt.so";

struct product {
  element type;
  std::int64_t m, n, k, batch;
};

void describe(operation& done, const product& p) {
  const auto side = [](std::int64_t size) {
    return static_cast<std::uint64_t>(size > 0 ? size : 0);
  };
  done.type = p.type;
  done.m = static_cast<std::uint32_t>(side(p.m));
  done.n = static_cast<std::uint32_t>(side(p.n));
  done.k = static_cast<std::uint32_t>(side(p.k));
  done.batch = static_cast<std::uint32_t>(side(p.batch));
  done.flop = 2 * side(p.m) * side(p.n) * side(p.k) * side(p.batch);
}

real_function next_stream("cublasGetStream_v2", library);

abi::cuda_stream stream_of(abi::cublas_handle handle, const void* caller) {
  abi::cuda_stream stream = nullptr;
  if (auto* const real =
          next_stream.as<abi::cublas_status(abi::cublas_handle, abi::cuda_stream*)>(caller))
    real(handle, &stream);
  return stream;
}

template<class Call>
int multiplied(abi::cublas_handle handle, const void* caller, const product& p, Call&& call) {
  return traced(
      operation_class::gemm, [&] { return stream_of(handle, caller); }, call,
      [&](operation& done) { describe(done, p); });
}

// ---- cublasLt: sizes are attributes of the matrices ----

real_function next_layout("cublasLtMatrixLayoutGetAttribute", light_library);
real_function next_descriptor("cublasLtMatmulDescGetAttribute", light_library);

template<class Value>
Value attribute(real_function& next, const void* caller, const void* of, int which,
                Value otherwise) {
  Value value = otherwise;
  auto* const real =
      next.as<abi::cublas_status(const void*, int, void*, std::size_t, std::size_t*)>(caller);
  std::size_t written = 0;
  if (!real || !of || real(of, which, &value, sizeof value, &written) != 0)
    return otherwise;
  return value;
}

product product_of(const void* caller, const void* descriptor, const void* a, const void* d) {
  const auto size = [caller](const void* matrix, int which) {
    return static_cast<std::int64_t>(
        attribute<std::uint64_t>(next_layout, caller, matrix, which, 0));
  };
  const auto transposed =
      attribute<std::int32_t>(next_descriptor, caller, descriptor, abi::matmul_transpose_a,
                              abi::cublas_no_transpose) != abi::cublas_no_transpose;
  product p{};
  p.type = element_of_cuda(attribute<std::int32_t>(next_layout, caller, a, abi::layout_type, -1));
  p.m = size(d, abi::layout_rows);
  p.n = size(d, abi::layout_columns);
  p.k = size(a, transposed ? abi::layout_rows : abi::layout_columns);
  p.batch = attribute<std::int32_t>(next_layout, caller, d, abi::layout_batch_count, 1);
  return p;
}

real_function next_gemm("cublasGemmEx", library);
real_function next_batched("cublasGemmStridedBatchedEx", library);
real_function next_sgemm("cublasSgemm_v2", library);
real_function next_sgemm_batched("cublasSgemmStridedBatched", library);
real_function next_matmul("cublasLtMatmul", light_library);

} // namespace

TROUPE_INTERCEPT abi::cublas_status cublasGemmEx(abi::cublas_handle handle, int transpose_a,
                                                 int transpose_b, int m, int n, int k,
                                                 const void* alpha, const void* a, int a_type,
                                                 int a_lead, const void* b, int b_type, int b_lead,
                                                 const void* beta, void* c, int c_type, int c_lead,
                                                 int compute, int algorithm) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_gemm.as<decltype(cublasGemmEx)>(caller);
  if (!real)
    return abi::cublas_not_supported;
  return multiplied(handle, caller, {element_of_cuda(a_type), m, n, k, 1}, [&] {
    return real(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, a_lead, b, b_type,
                b_lead, beta, c, c_type, c_lead, compute, algorithm);
  });
}

TROUPE_INTERCEPT abi::cublas_status
cublasGemmStridedBatchedEx(abi::cublas_handle handle, int transpose_a, int transpose_b, int m,
                           int n, int k, const void* alpha, const void* a, int a_type, int a_lead,
                           long long a_stride, const void* b, int b_type, int b_lead,
                           long long b_stride, const void* beta, void* c, int c_type, int c_lead,
                           long long c_stride, int batch, int compute, int algorithm) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_batched.as<decltype(cublasGemmStridedBatchedEx)>(caller);
  if (!real)
    return abi::cublas_not_supported;
  return multiplied(handle, caller, {element_of_cuda(a_type), m, n, k, batch}, [&] {
    return real(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, a_lead, a_stride, b,
                b_type, b_lead, b_stride, beta, c, c_type, c_lead, c_stride, batch, compute,
                algorithm);
  });
}

TROUPE_INTERCEPT abi::cublas_status cublasSgemm_v2(abi::cublas_handle handle, int transpose_a,
                                                   int transpose_b, int m, int n, int k,
                                                   const float* alpha, const float* a, int a_lead,
                                                   const float* b, int b_lead, const float* beta,
                                                   float* c, int c_lead) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_sgemm.as<decltype(cublasSgemm_v2)>(caller);
  if (!real)
    return abi::cublas_not_supported;
  return multiplied(handle, caller, {element::float32, m, n, k, 1}, [&] {
    return real(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_lead, b, b_lead, beta, c,
                c_lead);
  });
}

TROUPE_INTERCEPT abi::cublas_status
cublasSgemmStridedBatched(abi::cublas_handle handle, int transpose_a, int transpose_b, int m, int n,
                          int k, const float* alpha, const float* a, int a_lead, long long a_stride,
                          const float* b, int b_lead, long long b_stride, const float* beta,
                          float* c, int c_lead, long long c_stride, int batch) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_sgemm_batched.as<decltype(cublasSgemmStridedBatched)>(caller);
  if (!real)
    return abi::cublas_not_supported;
  return multiplied(handle, caller, {element::float32, m, n, k, batch}, [&] {
    return real(handle, transpose_a, transpose_b, m, n, k, alpha, a, a_lead, a_stride, b, b_lead,
                b_stride, beta, c, c_lead, c_stride, batch);
  });
}

TROUPE_INTERCEPT abi::cublas_status
cublasLtMatmul(void* handle, void* descriptor, const void* alpha, const void* a, void* a_layout,
               const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
               void* d, void* d_layout, const void* algorithm, void* workspace,
               std::size_t workspace_bytes, abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_matmul.as<decltype(cublasLtMatmul)>(caller);
  if (!real)
    return abi::cublas_not_supported;
  return traced(
      operation_class::gemm, [stream] { return stream; },
      [&] {
        return real(handle, descriptor, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                    d_layout, algorithm, workspace, workspace_bytes, stream);
      },
      [&](operation& done) { describe(done, product_of(caller, descriptor, a_layout, d_layout)); });
}

static_assert(std::is_same_v<decltype(::cublasGemmEx), signatures::cublasGemmEx>);
static_assert(
    std::is_same_v<decltype(::cublasGemmStridedBatchedEx), signatures::cublasGemmStridedBatchedEx>);
static_assert(std::is_same_v<decltype(::cublasSgemm_v2), signatures::cublasSgemm>);
static_assert(
    std::is_same_v<decltype(::cublasSgemmStridedBatched), signatures::cublasSgemmStridedBatched>);
static_assert(std::is_same_v<decltype(::cublasLtMatmul), signatures::cublasLtMatmul>);
