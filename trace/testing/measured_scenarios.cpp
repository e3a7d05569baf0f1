#include "trace/testing/scenarios.hpp"

#include <cstdio>

// Scenarios whose measurements are known exactly.

namespace troupe::trace::testing {

namespace {

constexpr int calls = 20;
constexpr int float16 = 6;

} // namespace

void collectives() {
  begin();
  const auto of = communicator(8);
  const auto in = stream(1);
  for (int n = 0; n < calls; ++n)
    all_reduce(of, in, 262'144, 1'000'000); // 1 MiB
  fake_duration(500'000);
  for (int n = 0; n < calls; ++n) {
    ncclAllGather(nullptr, nullptr, 65'536, float16, of, in); // 1 MiB of all ranks together
    ncclReduceScatter(nullptr, nullptr, 65'536, float16, 0, of, in);
    ncclBroadcast(nullptr, nullptr, 512, float16, 0, of, in);
    ncclBcast(nullptr, 512, float16, 0, of, in);
    ncclReduce(nullptr, nullptr, 512, float16, 0, 0, of, in);
    ncclSend(nullptr, 512, float16, 1, of, in);
    ncclRecv(nullptr, 512, float16, 1, of, in);
  }
  fake_advance(10'000'000'000);
  settle(8 * calls);
  ncclCommDestroy(of);
}

void groups() {
  begin();
  const auto of = communicator(4);
  for (int n = 0; n < calls; ++n) {
    fake_duration(2'000'000);
    ncclGroupStart();
    ncclGroupStart(); // a group within a group launches nothing by its end
    all_reduce(of, stream(1), 262'144, 2'000'000);
    all_reduce(of, stream(1), 262'144, 2'000'000);
    ncclGroupEnd();
    all_reduce(of, stream(1), 262'144, 2'000'000);
    ncclGroupEnd();

    ncclGroupStart();
    for (int peer = 0; peer < 4; ++peer) {
      ncclSend(nullptr, 65'536, 7, peer, of, stream(2)); // 256 KiB to each
      ncclRecv(nullptr, 65'536, 7, peer, of, stream(2));
    }
    ncclGroupEnd();
  }
  fake_advance(10'000'000'000);
  settle(2 * calls);
}

void products() {
  begin();
  struct {
    std::int32_t type, batch;
    std::uint64_t rows, columns;
  } a{14, 2, 256, 512}, d{14, 2, 512, 1024}; // a is transposed: m 512, k 256
  struct {
    std::int32_t transpose_a;
  } descriptor{1};
  const float one = 1;
  for (int n = 0; n < calls; ++n) {
    fake_duration(100'000);
    cublasGemmEx(stream(1), 0, 0, 1000, 1000, 1000, &one, nullptr, 2, 1000, nullptr, 2, 1000, &one,
                 nullptr, 2, 1000, 68, -1);
    cublasGemmStridedBatchedEx(stream(1), 0, 0, 1000, 1000, 10, &one, nullptr, 14, 1000, 0, nullptr,
                               14, 1000, 0, &one, nullptr, 14, 1000, 0, 5, 68, -1);
    cublasSgemm_v2(stream(1), 0, 0, 10, 10, 10, &one, nullptr, 10, nullptr, 10, &one, nullptr, 10);
    cublasLtMatmul(nullptr, &descriptor, &one, nullptr, &a, nullptr, &d, &one, nullptr, &d, nullptr,
                   &d, nullptr, nullptr, 0, stream(1));
  }
  fake_advance(10'000'000'000);
  settle(4 * calls);
}

void sampled() {
  begin();
  const float one = 1;
  fake_duration(100'000);
  for (int n = 0; n < 90; ++n) // in turn two kinds
    cublasSgemm_v2(stream(1), 0, 0, n % 2 == 0 ? 10 : 1000, 10, 1000, &one, nullptr, 10, nullptr,
                   10, &one, nullptr, 10);
  fake_advance(1'000'000'000);
  settle(30);
}

void copies() {
  begin();
  for (int n = 0; n < calls; ++n) {
    fake_duration(50'000);
    cudaMemcpyAsync(nullptr, nullptr, 1 << 20, 1, stream(1));
    cudaMemcpyAsync(nullptr, nullptr, 1 << 20, 2, stream(1));
    cudaMemsetAsync(nullptr, 0, 4096, stream(1));
    launch(stream(1), 10'000);
    cudaLaunchKernel_ptsz(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
    const abi::launch_config config{{1, 1, 1}, {1, 1, 1}, 0, stream(1), nullptr, 0};
    cudaLaunchKernelExC(&config, nullptr, nullptr);
  }
  fake_advance(10'000'000'000);
  settle(6 * calls);
}

void reused() {
  begin();
  // One after the other, more than there is room for at once.
  for (int n = 0; n < 1000; ++n) {
    const auto of = communicator(2, static_cast<char>(n % 100));
    all_reduce(of, stream(1), 1024, 1000);
    fake_advance(10'000);
    settle(static_cast<std::uint64_t>(n) + 1);
    ncclCommAbort(of);
  }
}

void split() {
  begin();
  const auto parent = communicator(8);
  nccl_communicator part = nullptr, none = nullptr, second = nullptr;
  ncclCommSplit(parent, 1, 0, &part, nullptr);
  ncclCommSplit(parent, -1, 0, &none, nullptr);
  ncclCommSplit(parent, 1, 0, &second, nullptr);
  nccl_communicator unseen = nullptr;
  ncclCommInitAll(&unseen, 1, nullptr); // is not intercepted
  for (const auto of : {parent, part, second, unseen})
    all_reduce(of, stream(1), 1024, 1000);
  fake_advance(1'000'000);
  settle(4);
}

} // namespace troupe::trace::testing
