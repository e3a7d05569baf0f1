#include "trace/abi.hpp"
#include "trace/testing/fake.hpp"

// libcudart.so.12, as far as the tests use it. Like the real one it remembers the last error of
// each thread.

using namespace troupe::trace;

extern "C" int cuCtxSetCurrent(void* other);

namespace {

thread_local int last_error = 0;

int answered() {
  const int result = fake_take_result();
  if (result != 0)
    last_error = result;
  return result;
}

} // namespace

extern "C" {

int cudaSetDevice(int device) {
  return cuCtxSetCurrent(
      reinterpret_cast<void*>(std::uintptr_t{0x1000} + 16u * static_cast<unsigned>(device)));
}

int cudaGetLastError() {
  const int error = last_error;
  last_error = 0;
  return error;
}

int cudaPeekAtLastError() {
  return last_error;
}

int cudaLaunchKernel(const void*, abi::dim3, abi::dim3, void**, std::size_t,
                     abi::cuda_stream stream) {
  const int result = answered();
  if (result == 0)
    fake_launch(stream);
  return result;
}

int cudaLaunchKernel_ptsz(const void*, abi::dim3, abi::dim3, void**, std::size_t,
                          abi::cuda_stream stream) {
  fake_launch(stream ? stream : abi::per_thread_stream());
  return answered();
}

int cudaLaunchKernelExC(const abi::launch_config* config, const void*, void**) {
  fake_launch(config->stream);
  return answered();
}

int cudaMemcpyAsync(void*, const void*, std::size_t, int, abi::cuda_stream stream) {
  const int result = answered();
  if (result == 0)
    fake_launch(stream);
  fake_count_copy();
  return result;
}

int cudaMemsetAsync(void*, int, std::size_t, abi::cuda_stream stream) {
  fake_launch(stream);
  fake_count_copy();
  return answered();
}
}
