#include "trace/abi.hpp"
#include "trace/testing/fake.hpp"

// libcublas.so.12 and libcublasLt.so.12 in one: a handle is a stream, a layout its own sizes.

using namespace troupe::trace;

namespace {

struct layout {
  std::int32_t type, batch;
  std::uint64_t rows, columns;
};

struct descriptor {
  std::int32_t transpose_a;
};

int multiplied(void* stream) {
  fake_count_product();
  const int result = fake_take_result();
  if (result == 0)
    fake_launch(stream);
  return result;
}

template<class Value>
int give(void* into, std::size_t bytes, Value value) {
  if (bytes != sizeof value)
    return 7; // CUBLAS_STATUS_INVALID_VALUE
  *static_cast<Value*>(into) = value;
  return 0;
}

} // namespace

extern "C" {

int cublasGetStream_v2(void* handle, void** stream) {
  *stream = handle;
  return 0;
}

int cublasGemmEx(void* handle, int, int, int, int, int, const void*, const void*, int, int,
                 const void*, int, int, const void*, void*, int, int, int, int) {
  return multiplied(handle);
}

int cublasGemmStridedBatchedEx(void* handle, int, int, int, int, int, const void*, const void*, int,
                               int, long long, const void*, int, int, long long, const void*, void*,
                               int, int, long long, int, int, int) {
  return multiplied(handle);
}

int cublasSgemm_v2(void* handle, int, int, int, int, int, const float*, const float*, int,
                   const float*, int, const float*, float*, int) {
  // Like the real one it launches its kernel through its own, hidden copy of the runtime.
  return multiplied(handle);
}

int cublasSgemmStridedBatched(void* handle, int, int, int, int, int, const float*, const float*,
                              int, long long, const float*, int, long long, const float*, float*,
                              int, long long, int) {
  return multiplied(handle);
}

int cublasLtMatrixLayoutGetAttribute(const void* of, int which, void* into, std::size_t bytes,
                                     std::size_t*) {
  const auto& l = *static_cast<const layout*>(of);
  switch (which) {
  case 0:
    return give(into, bytes, l.type);
  case 2:
    return give(into, bytes, l.rows);
  case 3:
    return give(into, bytes, l.columns);
  case 5:
    return give(into, bytes, l.batch);
  default:
    return 7;
  }
}

int cublasLtMatmulDescGetAttribute(const void* of, int which, void* into, std::size_t bytes,
                                   std::size_t*) {
  return which == 3 ? give(into, bytes, static_cast<const descriptor*>(of)->transpose_a) : 7;
}

int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void*, std::size_t,
                   abi::cuda_stream stream) {
  return multiplied(stream);
}
}
