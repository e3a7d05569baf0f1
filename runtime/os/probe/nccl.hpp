#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/probe/cuda_abi.hpp"
#include "runtime/os/probe/loaded_library.hpp"

#include <string>

namespace troupe::os {

/// NVIDIA's library for collectives, with all functions that the probe calls.
struct nccl {
  /// Where it is looked for: see nvidia_libraries.
  explicit nccl(const std::string& own_program);

  /// "NCCL 2.27.3". Empty: there is none.
  std::string name() const;
  /// Error: there is none, or it lacks a function.
  result<void> usable() const;
  /// Nothing if `code` is success; else what failed, in the library's words. It has more of them
  /// for the last failure in this process.
  result<void> check(cuda::nccl_result code, const std::string& what) const;

  loaded_library library;
  cuda::signatures::ncclGetVersion* version;
  cuda::signatures::ncclGetUniqueId* make_id;
  cuda::signatures::ncclCommInitRank* join;
  cuda::signatures::ncclCommDestroy* leave;
  cuda::signatures::ncclCommAbort* abort;
  cuda::signatures::ncclCommGetAsyncError* failed_meanwhile;
  cuda::signatures::ncclGetErrorString* error_string;
  cuda::signatures::ncclGetLastError* last_error; ///< may be missing
  cuda::signatures::ncclGroupStart* begin_calls;
  cuda::signatures::ncclGroupEnd* end_calls;
  cuda::signatures::ncclAllReduce* all_reduce;
  cuda::signatures::ncclAllGather* all_gather;

 private:
  std::string missing_; ///< the first function that it lacks
};

} // namespace troupe::os
