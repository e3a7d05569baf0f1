#include "trace/abi.hpp"
#include "trace/process/hooks.hpp"
#include "trace/process/real.hpp"
#include "trace/process/tracer.hpp"
#include "trace/signatures.hpp"

#include <type_traits>

// The CUDA runtime's functions, under their own names. Those with `_ptsz` are what programs call
// that were compiled for a default stream of each thread; those with `__` what newer compilers call
// for `kernel<<<…>>>`.

using namespace troupe::trace;

namespace {

constexpr const char* library = "libcudart.so";

using launch_function = abi::cuda_error(const void*, abi::dim3, abi::dim3, void**, std::size_t,
                                        abi::cuda_stream);
using launch_with_function = abi::cuda_error(const abi::launch_config*, const void*, void**);
using copy_function = abi::cuda_error(void*, const void*, std::size_t, int, abi::cuda_stream);
using set_function = abi::cuda_error(void*, int, std::size_t, abi::cuda_stream);

abi::cuda_stream of_thread(abi::cuda_stream stream) {
  return stream ? stream : abi::per_thread_stream();
}

template<class Call>
int launched(const void* function, abi::cuda_stream stream, Call&& call) {
  return traced(
      operation_class::launch, [stream] { return stream; }, call,
      [function](operation& done) { done.function = function; });
}

template<class Call>
int copied(copy_kind kind, std::size_t bytes, abi::cuda_stream stream, Call&& call) {
  return traced(
      operation_class::copy, [stream] { return stream; }, call,
      [kind, bytes](operation& done) {
        done.kind = static_cast<std::uint8_t>(kind);
        done.bytes = bytes;
      });
}

copy_kind kind_of(int direction) {
  return direction >= 0 && direction <= static_cast<int>(copy_kind::by_address)
             ? static_cast<copy_kind>(direction)
             : copy_kind::by_address;
}

int launch(real_function& next, const void* caller, bool of_threads, const void* function,
           abi::dim3 grid, abi::dim3 block, void** arguments, std::size_t shared,
           abi::cuda_stream stream) {
  auto* const real = next.as<launch_function>(caller);
  if (!real)
    return abi::cuda_symbol_not_found;
  return launched(function, of_threads ? of_thread(stream) : stream,
                  [&] { return real(function, grid, block, arguments, shared, stream); });
}

int launch_with(real_function& next, const void* caller, bool of_threads,
                const abi::launch_config* config, const void* function, void** arguments) {
  auto* const real = next.as<launch_with_function>(caller);
  if (!real)
    return abi::cuda_symbol_not_found;
  if (!config)
    return real(config, function, arguments);
  return launched(function, of_threads ? of_thread(config->stream) : config->stream,
                  [&] { return real(config, function, arguments); });
}

int copy(real_function& next, const void* caller, bool of_threads, void* to, const void* from,
         std::size_t bytes, int direction, abi::cuda_stream stream) {
  auto* const real = next.as<copy_function>(caller);
  if (!real)
    return abi::cuda_symbol_not_found;
  return copied(kind_of(direction), bytes, of_threads ? of_thread(stream) : stream,
                [&] { return real(to, from, bytes, direction, stream); });
}

int set(real_function& next, const void* caller, bool of_threads, void* to, int value,
        std::size_t bytes, abi::cuda_stream stream) {
  auto* const real = next.as<set_function>(caller);
  if (!real)
    return abi::cuda_symbol_not_found;
  return copied(copy_kind::memory_set, bytes, of_threads ? of_thread(stream) : stream,
                [&] { return real(to, value, bytes, stream); });
}

real_function next_launch("cudaLaunchKernel", library);
real_function next_launch_ptsz("cudaLaunchKernel_ptsz", library);
real_function next_compiled_launch("__cudaLaunchKernel", library);
real_function next_compiled_launch_ptsz("__cudaLaunchKernel_ptsz", library);
real_function next_launch_with("cudaLaunchKernelExC", library);
real_function next_launch_with_ptsz("cudaLaunchKernelExC_ptsz", library);
real_function next_copy("cudaMemcpyAsync", library);
real_function next_copy_ptsz("cudaMemcpyAsync_ptsz", library);
real_function next_set("cudaMemsetAsync", library);
real_function next_set_ptsz("cudaMemsetAsync_ptsz", library);

} // namespace

TROUPE_INTERCEPT abi::cuda_error cudaLaunchKernel(const void* function, abi::dim3 grid,
                                                  abi::dim3 block, void** arguments,
                                                  std::size_t shared, abi::cuda_stream stream) {
  return launch(next_launch, __builtin_return_address(0), false, function, grid, block, arguments,
                shared, stream);
}

TROUPE_INTERCEPT abi::cuda_error cudaLaunchKernel_ptsz(const void* function, abi::dim3 grid,
                                                       abi::dim3 block, void** arguments,
                                                       std::size_t shared,
                                                       abi::cuda_stream stream) {
  return launch(next_launch_ptsz, __builtin_return_address(0), true, function, grid, block,
                arguments, shared, stream);
}

TROUPE_INTERCEPT abi::cuda_error __cudaLaunchKernel(const void* kernel, abi::dim3 grid,
                                                    abi::dim3 block, void** arguments,
                                                    std::size_t shared, abi::cuda_stream stream) {
  return launch(next_compiled_launch, __builtin_return_address(0), false, kernel, grid, block,
                arguments, shared, stream);
}

TROUPE_INTERCEPT abi::cuda_error __cudaLaunchKernel_ptsz(const void* kernel, abi::dim3 grid,
                                                         abi::dim3 block, void** arguments,
                                                         std::size_t shared,
                                                         abi::cuda_stream stream) {
  return launch(next_compiled_launch_ptsz, __builtin_return_address(0), true, kernel, grid, block,
                arguments, shared, stream);
}

TROUPE_INTERCEPT abi::cuda_error cudaLaunchKernelExC(const abi::launch_config* config,
                                                     const void* function, void** arguments) {
  return launch_with(next_launch_with, __builtin_return_address(0), false, config, function,
                     arguments);
}

TROUPE_INTERCEPT abi::cuda_error cudaLaunchKernelExC_ptsz(const abi::launch_config* config,
                                                          const void* function, void** arguments) {
  return launch_with(next_launch_with_ptsz, __builtin_return_address(0), true, config, function,
                     arguments);
}

TROUPE_INTERCEPT abi::cuda_error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                                 int direction, abi::cuda_stream stream) {
  return copy(next_copy, __builtin_return_address(0), false, to, from, bytes, direction, stream);
}

TROUPE_INTERCEPT abi::cuda_error cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes,
                                                      int direction, abi::cuda_stream stream) {
  return copy(next_copy_ptsz, __builtin_return_address(0), true, to, from, bytes, direction,
              stream);
}

TROUPE_INTERCEPT abi::cuda_error cudaMemsetAsync(void* to, int value, std::size_t bytes,
                                                 abi::cuda_stream stream) {
  return set(next_set, __builtin_return_address(0), false, to, value, bytes, stream);
}

TROUPE_INTERCEPT abi::cuda_error cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes,
                                                      abi::cuda_stream stream) {
  return set(next_set_ptsz, __builtin_return_address(0), true, to, value, bytes, stream);
}

static_assert(std::is_same_v<decltype(::cudaLaunchKernel), signatures::cudaLaunchKernel>);
static_assert(std::is_same_v<decltype(::cudaLaunchKernel_ptsz), signatures::cudaLaunchKernel>);
static_assert(std::is_same_v<decltype(::__cudaLaunchKernel), signatures::cudaLaunchKernel>);
static_assert(std::is_same_v<decltype(::__cudaLaunchKernel_ptsz), signatures::cudaLaunchKernel>);
static_assert(std::is_same_v<decltype(::cudaLaunchKernelExC), signatures::cudaLaunchKernelExC>);
static_assert(
    std::is_same_v<decltype(::cudaLaunchKernelExC_ptsz), signatures::cudaLaunchKernelExC>);
static_assert(std::is_same_v<decltype(::cudaMemcpyAsync), signatures::cudaMemcpyAsync>);
static_assert(std::is_same_v<decltype(::cudaMemcpyAsync_ptsz), signatures::cudaMemcpyAsync>);
static_assert(std::is_same_v<decltype(::cudaMemsetAsync), signatures::cudaMemsetAsync>);
static_assert(std::is_same_v<decltype(::cudaMemsetAsync_ptsz), signatures::cudaMemsetAsync>);
