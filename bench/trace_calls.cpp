#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

// What calls of CUDA, NCCL and cuBLAS cost, in ns, as JSON: a burst of calls, then a rest, as
// training launches them. Of the bursts the median.

struct dim3 {
  unsigned x, y, z;
};
struct unique_id {
  char internal[128];
};
extern "C" {
int cudaSetDevice(int);
int cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, void*);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
int ncclCommInitRank(void**, int, unique_id, int);
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, void*);
int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int);
}

namespace {

constexpr int bursts = 500, in_a_burst = 64;

template<class Call>
double ns_of(Call&& call) {
  std::vector<double> all;
  for (int b = 0; b < bursts; ++b) {
    const auto began = std::chrono::steady_clock::now();
    for (int n = 0; n < in_a_burst; ++n)
      call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    all.push_back(took.count() / in_a_burst);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  std::nth_element(all.begin(), all.begin() + bursts / 2, all.end());
  return all[bursts / 2];
}

} // namespace

int main() {
  cudaSetDevice(0);
  void* communicator = nullptr;
  ncclCommInitRank(&communicator, 8, {}, 0);
  const float alpha = 1;
  ns_of([] { cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr); }); // begins
  const auto launch = ns_of([] {
    cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
  });
  const auto copy = ns_of([] { cudaMemcpyAsync(nullptr, nullptr, 1024, 1, nullptr); });
  const auto product = ns_of([&] {
    cublasGemmEx(nullptr, 0, 0, 64, 64, 64, &alpha, nullptr, 2, 64, nullptr, 2, 64, &alpha, nullptr,
                 2, 64, 68, -1);
  });
  const auto collective =
      ns_of([&] { ncclAllReduce(nullptr, nullptr, 1024, 7, 0, communicator, nullptr); });
  std::printf("{\"launch\": %.2f, \"copy\": %.2f, \"gemm\": %.2f, \"collective\": %.2f}\n", launch,
              copy, product, collective);
}
