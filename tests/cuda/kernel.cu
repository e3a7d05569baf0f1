// For a device: 2,000 kernels, each of which adds 1, and copies in both directions. Prints the sum.

#include <cstdio>

#include <cuda_runtime.h>

__global__ void add(int* sum) {
  atomicAdd(sum, 1);
}

int main() {
  int *sum = nullptr, result = -1;
  const int zero = 0;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaMalloc(&sum, sizeof *sum);
  cudaMemcpyAsync(sum, &zero, sizeof zero, cudaMemcpyHostToDevice, stream);
  for (int n = 0; n < 2'000; ++n)
    add<<<1, 1, 0, stream>>>(sum);
  cudaMemcpyAsync(&result, sum, sizeof result, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  if (const auto error = cudaGetLastError(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
  }
  std::printf("%d\n", result);
  return 0;
}
