#pragma once

#include "trace/abi.hpp"

/// The functions of CUDA, NCCL and cuBLAS that tests call, as a program is compiled against them.
extern "C" {
using troupe::trace::abi::cuda_stream;
using troupe::trace::abi::dim3;
using troupe::trace::abi::nccl_communicator;
using troupe::trace::abi::nccl_unique_id;

int cudaSetDevice(int device);
int cudaGetLastError();
int cudaPeekAtLastError();
int cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cuda_stream);
int cudaLaunchKernel_ptsz(const void*, dim3, dim3, void**, std::size_t, cuda_stream);
int cudaLaunchKernelExC(const troupe::trace::abi::launch_config*, const void*, void**);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, cuda_stream);
int cudaMemsetAsync(void*, int, std::size_t, cuda_stream);

int ncclCommInitRank(nccl_communicator*, int, nccl_unique_id, int);
int ncclCommInitAll(nccl_communicator*, int, const int*);
int ncclCommSplit(nccl_communicator, int, int, nccl_communicator*, void*);
int ncclCommDestroy(nccl_communicator);
int ncclCommAbort(nccl_communicator);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, std::size_t, int, int, nccl_communicator, cuda_stream);
int ncclReduce(const void*, void*, std::size_t, int, int, int, nccl_communicator, cuda_stream);
int ncclBroadcast(const void*, void*, std::size_t, int, int, nccl_communicator, cuda_stream);
int ncclBcast(void*, std::size_t, int, int, nccl_communicator, cuda_stream);
int ncclAllGather(const void*, void*, std::size_t, int, nccl_communicator, cuda_stream);
int ncclReduceScatter(const void*, void*, std::size_t, int, int, nccl_communicator, cuda_stream);
int ncclSend(const void*, std::size_t, int, int, nccl_communicator, cuda_stream);
int ncclRecv(void*, std::size_t, int, int, nccl_communicator, cuda_stream);

int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int);
int cublasGemmStridedBatchedEx(void*, int, int, int, int, int, const void*, const void*, int, int,
                               long long, const void*, int, int, long long, const void*, void*, int,
                               int, long long, int, int, int);
int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int, const float*,
                   int, const float*, float*, int);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void*, std::size_t, cuda_stream);
}
