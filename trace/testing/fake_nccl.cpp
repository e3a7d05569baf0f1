#include "trace/abi.hpp"
#include "trace/testing/fake.hpp"

#include <array>
#include <cstddef>

// libnccl.so.2: a collective is one launch, and a group is launched by its end.

using namespace troupe::trace;

namespace troupe::trace::abi {
struct communicator_of_nccl {
  int members;
};
} // namespace troupe::trace::abi

namespace {

struct noted {
  std::array<abi::cuda_stream, 64> streams{};
  std::size_t count = 0;
  int depth = 0;
};
thread_local noted group;

void note(abi::cuda_stream stream) {
  for (std::size_t at = 0; at < group.count; ++at)
    if (group.streams[at] == stream)
      return;
  group.streams[group.count++ % group.streams.size()] = stream;
}

int asked(abi::cuda_stream stream) {
  fake_count_collective();
  const int result = fake_take_result();
  if (result != 0)
    return result;
  if (group.depth > 0)
    note(stream);
  else
    fake_launch(stream);
  return 0;
}

} // namespace

extern "C" {

int ncclCommInitRank(abi::nccl_communicator* into, int members, abi::nccl_unique_id, int) {
  *into = new abi::communicator_of_nccl{members};
  return 0;
}

int ncclCommInitRankConfig(abi::nccl_communicator* into, int members, abi::nccl_unique_id, int,
                           void*) {
  *into = new abi::communicator_of_nccl{members};
  return 0;
}

int ncclCommInitAll(abi::nccl_communicator* into, int devices, const int*) {
  for (int at = 0; at < devices; ++at)
    into[at] = new abi::communicator_of_nccl{devices};
  return 0;
}

int ncclCommSplit(abi::nccl_communicator of, int color, int, abi::nccl_communicator* into, void*) {
  *into = color < 0 ? nullptr : new abi::communicator_of_nccl{of->members / 2};
  return 0;
}

int ncclCommCount(abi::nccl_communicator of, int* count) {
  *count = of->members;
  return 0;
}

int ncclCommDestroy(abi::nccl_communicator of) {
  delete of;
  return 0;
}

int ncclCommAbort(abi::nccl_communicator of) {
  delete of;
  return 0;
}

int ncclGroupStart() {
  ++group.depth;
  return 0;
}

int ncclGroupEnd() {
  if (--group.depth > 0)
    return 0;
  const int result = fake_take_result();
  for (std::size_t at = 0; result == 0 && at < group.count; ++at)
    fake_launch(group.streams[at]);
  group.count = 0;
  return result;
}

int ncclAllReduce(const void*, void*, std::size_t, int, int, abi::nccl_communicator,
                  abi::cuda_stream stream) {
  return asked(stream);
}

int ncclReduce(const void*, void*, std::size_t, int, int, int, abi::nccl_communicator,
               abi::cuda_stream stream) {
  return asked(stream);
}

int ncclBroadcast(const void*, void*, std::size_t, int, int, abi::nccl_communicator,
                  abi::cuda_stream stream) {
  return asked(stream);
}

int ncclBcast(void*, std::size_t, int, int, abi::nccl_communicator, abi::cuda_stream stream) {
  return asked(stream);
}

int ncclAllGather(const void*, void*, std::size_t, int, abi::nccl_communicator,
                  abi::cuda_stream stream) {
  return asked(stream);
}

int ncclReduceScatter(const void*, void*, std::size_t, int, int, abi::nccl_communicator,
                      abi::cuda_stream stream) {
  return asked(stream);
}

int ncclSend(const void*, std::size_t, int, int, abi::nccl_communicator, abi::cuda_stream stream) {
  return asked(stream);
}

int ncclRecv(void*, std::size_t, int, int, abi::nccl_communicator, abi::cuda_stream stream) {
  return asked(stream);
}
}
