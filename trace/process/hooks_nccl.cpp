#include "trace/abi.hpp"
#include "trace/process/collectives.hpp"
#include "trace/process/hooks.hpp"
#include "trace/process/real.hpp"
#include "trace/process/tracer.hpp"
#include "trace/signatures.hpp"

#include <type_traits>

// NCCL's functions, under their own names.

using namespace troupe::trace;
using troupe::diag::collective;

namespace {

constexpr const char* library = "libnccl.so";

/// All zero at first, as each thread's memory is.
union group_memory {
  char zero;
  collective_group own;
  constexpr group_memory() : zero(0) {}
};
thread_local group_memory memory_of_group;
collective_group& group() {
  return memory_of_group.own;
}

template<class Call>
abi::nccl_result communicated(const collective_call& asked, const void* caller, Call&& call) {
  const within_call inside;
  auto& tracer = the_tracer();
  if (!inside.outermost() || !asked.communicator || !tracer.on())
    return call();
  tracer.counted(operation_class::collective);
  const auto row = row_of(asked.communicator, caller);
  if (group().open()) {
    // Before the call: NCCL may use the stream already.
    group().add(asked, row);
    const auto result = call();
    if (result != abi::nccl_success)
      tracer.failed(operation_class::collective);
    return result;
  }
  launched_collective one;
  one.begin(asked, row);
  one.enter();
  const auto result = call();
  one.launched(result);
  return result;
}

real_function next_all_reduce("ncclAllReduce", library);
real_function next_reduce("ncclReduce", library);
real_function next_broadcast("ncclBroadcast", library);
real_function next_bcast("ncclBcast", library);
real_function next_all_gather("ncclAllGather", library);
real_function next_reduce_scatter("ncclReduceScatter", library);
real_function next_all_to_all("ncclAlltoAll", library);
real_function next_send("ncclSend", library);
real_function next_receive("ncclRecv", library);
real_function next_group_start("ncclGroupStart", library);
real_function next_group_end("ncclGroupEnd", library);

} // namespace

TROUPE_INTERCEPT abi::nccl_result ncclAllReduce(const void* send, void* receive, std::size_t count,
                                                abi::nccl_data_type type, abi::nccl_operation op,
                                                abi::nccl_communicator of,
                                                abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_all_reduce.as<decltype(ncclAllReduce)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::all_reduce, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, op, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclReduce(const void* send, void* receive, std::size_t count,
                                             abi::nccl_data_type type, abi::nccl_operation op,
                                             int root, abi::nccl_communicator of,
                                             abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_reduce.as<decltype(ncclReduce)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::reduce, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, op, root, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclBroadcast(const void* send, void* receive, std::size_t count,
                                                abi::nccl_data_type type, int root,
                                                abi::nccl_communicator of,
                                                abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_broadcast.as<decltype(ncclBroadcast)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::broadcast, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, root, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclBcast(void* buffer, std::size_t count,
                                            abi::nccl_data_type type, int root,
                                            abi::nccl_communicator of, abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_bcast.as<decltype(ncclBcast)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::broadcast, count, type, of, stream}, caller,
                      [&] { return real(buffer, count, type, root, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclAllGather(const void* send, void* receive, std::size_t count,
                                                abi::nccl_data_type type, abi::nccl_communicator of,
                                                abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_all_gather.as<decltype(ncclAllGather)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::all_gather, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result
ncclReduceScatter(const void* send, void* receive, std::size_t count, abi::nccl_data_type type,
                  abi::nccl_operation op, abi::nccl_communicator of, abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_reduce_scatter.as<decltype(ncclReduceScatter)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::reduce_scatter, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, op, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclAlltoAll(const void* send, void* receive, std::size_t count,
                                               abi::nccl_data_type type, abi::nccl_communicator of,
                                               abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_all_to_all.as<decltype(ncclAlltoAll)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::all_to_all, count, type, of, stream}, caller,
                      [&] { return real(send, receive, count, type, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclSend(const void* send, std::size_t count,
                                           abi::nccl_data_type type, int peer,
                                           abi::nccl_communicator of, abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_send.as<decltype(ncclSend)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::send, count, type, of, stream}, caller,
                      [&] { return real(send, count, type, peer, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclRecv(void* receive, std::size_t count,
                                           abi::nccl_data_type type, int peer,
                                           abi::nccl_communicator of, abi::cuda_stream stream) {
  const void* const caller = __builtin_return_address(0);
  auto* const real = next_receive.as<decltype(ncclRecv)>(caller);
  if (!real)
    return abi::nccl_internal_error;
  return communicated({collective::recv, count, type, of, stream}, caller,
                      [&] { return real(receive, count, type, peer, of, stream); });
}

TROUPE_INTERCEPT abi::nccl_result ncclGroupStart() {
  auto* const real = next_group_start.as<decltype(ncclGroupStart)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  const auto result = real();
  if (inside.outermost() && result == abi::nccl_success)
    group().enter();
  return result;
}

TROUPE_INTERCEPT abi::nccl_result ncclGroupEnd() {
  auto* const real = next_group_end.as<decltype(ncclGroupEnd)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  if (!inside.outermost() || !group().open() || !group().leave())
    return real();
  group().launching();
  const auto result = real();
  group().launched(result);
  return result;
}

static_assert(std::is_same_v<decltype(::ncclAllReduce), signatures::ncclAllReduce>);
static_assert(std::is_same_v<decltype(::ncclReduce), signatures::ncclReduce>);
static_assert(std::is_same_v<decltype(::ncclBroadcast), signatures::ncclBroadcast>);
static_assert(std::is_same_v<decltype(::ncclBcast), signatures::ncclBcast>);
static_assert(std::is_same_v<decltype(::ncclAllGather), signatures::ncclAllGather>);
static_assert(std::is_same_v<decltype(::ncclReduceScatter), signatures::ncclReduceScatter>);
static_assert(std::is_same_v<decltype(::ncclAlltoAll), signatures::ncclAlltoAll>);
static_assert(std::is_same_v<decltype(::ncclSend), signatures::ncclSend>);
static_assert(std::is_same_v<decltype(::ncclRecv), signatures::ncclRecv>);
static_assert(std::is_same_v<decltype(::ncclGroupStart), signatures::ncclGroupStart>);
static_assert(std::is_same_v<decltype(::ncclGroupEnd), signatures::ncclGroupEnd>);
