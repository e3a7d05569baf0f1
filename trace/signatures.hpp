#pragma once

#include "trace/abi.hpp"

/// The functions that are intercepted, as they are declared here. The hooks are compared with this
/// list where they are defined, and this list with the real headers in abi_check.cpp, where there
/// are any: a hook cannot be compiled beside the header that declares the same name otherwise.
namespace troupe::trace::signatures {

using namespace abi;
using std::size_t;

using cudaLaunchKernel = int(const void*, dim3, dim3, void**, size_t, cuda_stream);
using cudaLaunchKernelExC = int(const launch_config*, const void*, void**);
using cudaMemcpyAsync = int(void*, const void*, size_t, int, cuda_stream);
using cudaMemsetAsync = int(void*, int, size_t, cuda_stream);

using cublasGemmEx = int(cublas_handle, int, int, int, int, int, const void*, const void*, int, int,
                         const void*, int, int, const void*, void*, int, int, int, int);
using cublasGemmStridedBatchedEx = int(cublas_handle, int, int, int, int, int, const void*,
                                       const void*, int, int, long long, const void*, int, int,
                                       long long, const void*, void*, int, int, long long, int, int,
                                       int);
using cublasSgemm = int(cublas_handle, int, int, int, int, int, const float*, const float*, int,
                        const float*, int, const float*, float*, int);
using cublasSgemmStridedBatched = int(cublas_handle, int, int, int, int, int, const float*,
                                      const float*, int, long long, const float*, int, long long,
                                      const float*, float*, int, long long, int);
using cublasLtMatmul = int(void*, void*, const void*, const void*, void*, const void*, void*,
                           const void*, const void*, void*, void*, void*, const void*, void*,
                           size_t, cuda_stream);

using ncclCommInitRank = int(nccl_communicator*, int, nccl_unique_id, int);
using ncclCommInitRankConfig = int(nccl_communicator*, int, nccl_unique_id, int, void*);
using ncclCommInitRankScalable = int(nccl_communicator*, int, int, int, nccl_unique_id*, void*);
using ncclCommSplit = int(nccl_communicator, int, int, nccl_communicator*, void*);
using ncclCommShrink = int(nccl_communicator, int*, int, nccl_communicator*, void*, int);
using ncclCommDestroy = int(nccl_communicator);
using ncclAllReduce = int(const void*, void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclReduce = int(const void*, void*, size_t, int, int, int, nccl_communicator, cuda_stream);
using ncclBroadcast = int(const void*, void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclBcast = int(void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclAllGather = int(const void*, void*, size_t, int, nccl_communicator, cuda_stream);
using ncclReduceScatter = int(const void*, void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclAlltoAll = int(const void*, void*, size_t, int, nccl_communicator, cuda_stream);
using ncclSend = int(const void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclRecv = int(void*, size_t, int, int, nccl_communicator, cuda_stream);
using ncclGroupStart = int();
using ncclGroupEnd = int();

} // namespace troupe::trace::signatures
