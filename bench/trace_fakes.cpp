#include <cstddef>
#include <cstdint>

// CUDA, NCCL and cuBLAS that do nothing, in one library: what a call costs besides is the tracing
// library's. All events are over at once.

namespace {
struct dim3 {
  unsigned x, y, z;
};
struct unique_id {
  char internal[128];
};
thread_local void* context = nullptr;
int one = 0;
} // namespace

extern "C" {

int cuCtxGetCurrent(void** current) {
  *current = context;
  return 0;
}
int cuCtxSetCurrent(void* other) {
  context = other;
  return 0;
}
int cuEventCreate(void** made, unsigned) {
  *made = &one;
  return 0;
}
int cuEventDestroy_v2(void*) {
  return 0;
}
int cuEventRecord(void*, void*) {
  return 0;
}
int cuEventQuery(void*) {
  return 0;
}
int cuEventElapsedTime(float* ms, void*, void*) {
  *ms = 0.01f;
  return 0;
}
int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int*) {
  return 0;
}

int cudaSetDevice(int) {
  context = &one;
  return 0;
}
int cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, void*) {
  return 0;
}
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*) {
  return 0;
}

int ncclCommInitRank(void** into, int, unique_id, int) {
  *into = &one;
  return 0;
}
int ncclCommCount(void*, int* count) {
  *count = 8;
  return 0;
}
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*) {
  return 0;
}

int cublasGetStream_v2(void*, void** stream) {
  *stream = nullptr;
  return 0;
}
int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int) {
  return 0;
}
}
