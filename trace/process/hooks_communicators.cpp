#include "trace/abi.hpp"
#include "trace/process/collectives.hpp"
#include "trace/process/hooks.hpp"
#include "trace/process/real.hpp"
#include "trace/process/tracer.hpp"
#include "trace/signatures.hpp"

#include <type_traits>

// How NCCL's communicators begin and end.

using namespace troupe::trace;

namespace {

constexpr const char* library = "libnccl.so";

real_function next_init("ncclCommInitRank", library);
real_function next_init_with("ncclCommInitRankConfig", library);
real_function next_init_scalable("ncclCommInitRankScalable", library);
real_function next_split("ncclCommSplit", library);
real_function next_shrink("ncclCommShrink", library);
real_function next_destroy("ncclCommDestroy", library);
real_function next_abort("ncclCommAbort", library);

/// Made, or being made in the background.
bool made(abi::nccl_result result) {
  return result == 0 || result == 7;
}

std::uint32_t positive(int count) {
  return count > 0 ? static_cast<std::uint32_t>(count) : 0;
}

/// `call` makes a communicator of `parent`, for the ranks that have said the same color.
template<class Call>
abi::nccl_result made_of(abi::nccl_communicator parent, std::int64_t color,
                         abi::nccl_communicator* into, Call&& call) {
  const within_call inside;
  const auto result = call();
  if (inside.outermost() && made(result) && the_tracer().on()) {
    // Counted also by members that get none: it is the parent's number of splits.
    const auto name = name_of_next_part(parent, color);
    if (into)
      add_communicator(*into, name, 0);
  }
  return result;
}

} // namespace

TROUPE_INTERCEPT abi::nccl_result ncclCommInitRank(abi::nccl_communicator* into, int members,
                                                   abi::nccl_unique_id id, int rank) {
  auto* const real = next_init.as<decltype(ncclCommInitRank)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  const auto result = real(into, members, id, rank);
  if (inside.outermost() && made(result) && into)
    add_communicator(*into, name_of_id(id.internal, sizeof id.internal), positive(members));
  return result;
}

TROUPE_INTERCEPT abi::nccl_result ncclCommInitRankConfig(abi::nccl_communicator* into, int members,
                                                         abi::nccl_unique_id id, int rank,
                                                         void* config) {
  auto* const real =
      next_init_with.as<decltype(ncclCommInitRankConfig)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  const auto result = real(into, members, id, rank, config);
  if (inside.outermost() && made(result) && into)
    add_communicator(*into, name_of_id(id.internal, sizeof id.internal), positive(members));
  return result;
}

TROUPE_INTERCEPT abi::nccl_result ncclCommInitRankScalable(abi::nccl_communicator* into,
                                                           int members, int rank, int ids_count,
                                                           abi::nccl_unique_id* ids, void* config) {
  auto* const real =
      next_init_scalable.as<decltype(ncclCommInitRankScalable)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  const auto result = real(into, members, rank, ids_count, ids, config);
  if (inside.outermost() && made(result) && into && ids)
    add_communicator(*into, name_of_id(ids->internal, sizeof ids->internal * positive(ids_count)),
                     positive(members));
  return result;
}

TROUPE_INTERCEPT abi::nccl_result ncclCommSplit(abi::nccl_communicator of, int color, int key,
                                                abi::nccl_communicator* into, void* config) {
  auto* const real = next_split.as<decltype(ncclCommSplit)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  return made_of(of, color, into, [&] { return real(of, color, key, into, config); });
}

TROUPE_INTERCEPT abi::nccl_result ncclCommShrink(abi::nccl_communicator of, int* excluded,
                                                 int excluded_count, abi::nccl_communicator* into,
                                                 void* config, int flags) {
  auto* const real = next_shrink.as<decltype(ncclCommShrink)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  // Those that stay have said the same list.
  std::int64_t color = -1;
  for (int at = 0; excluded && at < excluded_count; ++at)
    color = color * 31 - excluded[at];
  return made_of(of, color, into,
                 [&] { return real(of, excluded, excluded_count, into, config, flags); });
}

TROUPE_INTERCEPT abi::nccl_result ncclCommDestroy(abi::nccl_communicator of) {
  auto* const real = next_destroy.as<decltype(ncclCommDestroy)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  remove_communicator(of);
  return real(of);
}

TROUPE_INTERCEPT abi::nccl_result ncclCommAbort(abi::nccl_communicator of) {
  auto* const real = next_abort.as<decltype(ncclCommAbort)>(__builtin_return_address(0));
  if (!real)
    return abi::nccl_internal_error;
  const within_call inside;
  remove_communicator(of);
  return real(of);
}

static_assert(std::is_same_v<decltype(::ncclCommInitRank), signatures::ncclCommInitRank>);
static_assert(
    std::is_same_v<decltype(::ncclCommInitRankConfig), signatures::ncclCommInitRankConfig>);
static_assert(
    std::is_same_v<decltype(::ncclCommInitRankScalable), signatures::ncclCommInitRankScalable>);
static_assert(std::is_same_v<decltype(::ncclCommSplit), signatures::ncclCommSplit>);
static_assert(std::is_same_v<decltype(::ncclCommShrink), signatures::ncclCommShrink>);
static_assert(std::is_same_v<decltype(::ncclCommDestroy), signatures::ncclCommDestroy>);
static_assert(std::is_same_v<decltype(::ncclCommAbort), signatures::ncclCommDestroy>);
