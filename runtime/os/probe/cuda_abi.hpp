#pragma once

#include <cstddef>
#include <cstdint>

/// What the probe knows of CUDA's driver, cuBLAS, NVML and NCCL: types and values of their public
/// interfaces. The libraries are loaded when a probe begins, where they are; so every build can
/// probe NVIDIA's devices, and none needs the CUDA Toolkit. Handles are opaque, enumerations `int`.
/// `cuda_abi_check.cpp` compares with the real headers where those are.
namespace troupe::os::cuda {

// The driver.
using driver_result = int;
using device = int;
using context = struct context_of_cuda*;
using event = struct event_of_cuda*;
using stream = struct stream_of_cuda*; ///< null: the context's default one
using pointer = unsigned long long;    ///< of a device's memory
inline constexpr driver_result success = 0, no_device = 100, not_ready = 600,
                               peer_access_already_enabled = 704;
inline constexpr int attribute_multiprocessors = 16, attribute_capability_major = 75;
/// "0000:3B:00.0" and its end.
inline constexpr std::size_t bus_id_size = 32;

// cuBLAS.
using blas_handle = struct handle_of_cublas*;
inline constexpr int blas_success = 0, blas_no_transpose = 0;
inline constexpr int data_float = 0, data_half = 2, data_bfloat16 = 14;
inline constexpr int blas_compute_float = 68, blas_default_algorithm = -1;

// NVML.
using nvml_result = int;
using nvml_device = struct device_of_nvml*;
inline constexpr nvml_result nvml_success = 0;
inline constexpr int nvml_uncorrected = 1, nvml_since_driver_load = 0;
inline constexpr int nvml_enabled = 1, nvml_remote_is_switch = 2;
inline constexpr unsigned nvml_links_max = 18;
struct nvml_memory {
  unsigned long long total, free, used;
};
struct nvml_pci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

// NCCL.
using nccl_result = int;
using nccl_communicator = struct communicator_of_nccl*;
inline constexpr nccl_result nccl_success = 0, nccl_in_progress = 7;
inline constexpr int nccl_float = 7, nccl_sum = 0;
/// Passed by value.
struct nccl_unique_id {
  char internal[128];
};

/// By the names under which the libraries have them.
namespace signatures {

using cuInit = driver_result(unsigned);
using cuDriverGetVersion = driver_result(int*); ///< 12040: 12.4
using cuGetErrorString = driver_result(driver_result, const char**);
using cuDeviceGetCount = driver_result(int*);
using cuDeviceGet = driver_result(device*, int);
using cuDeviceGetName = driver_result(char*, int, device);
using cuDeviceTotalMem_v2 = driver_result(std::size_t*, device);
using cuDeviceGetAttribute = driver_result(int*, int, device);
using cuDeviceGetPCIBusId = driver_result(char*, int, device);
using cuDevicePrimaryCtxRetain = driver_result(context*, device);
using cuCtxSetCurrent = driver_result(context);
using cuCtxEnablePeerAccess = driver_result(context, unsigned);
using cuDeviceCanAccessPeer = driver_result(int*, device, device);
using cuMemAlloc_v2 = driver_result(pointer*, std::size_t);
using cuMemFree_v2 = driver_result(pointer);
using cuMemcpyHtoD_v2 = driver_result(pointer, const void*, std::size_t);
using cuMemcpyDtoH_v2 = driver_result(void*, pointer, std::size_t);
using cuMemcpyPeerAsync = driver_result(pointer, context, pointer, context, std::size_t, stream);
using cuEventCreate = driver_result(event*, unsigned);
using cuEventDestroy_v2 = driver_result(event);
using cuEventRecord = driver_result(event, stream);
using cuEventSynchronize = driver_result(event);
using cuEventElapsedTime = driver_result(float*, event, event);
using cuStreamQuery = driver_result(stream);

using cublasCreate_v2 = int(blas_handle*);
using cublasDestroy_v2 = int(blas_handle);
using cublasGemmEx = int(blas_handle, int, int, int, int, int, const void*, const void*, int, int,
                         const void*, int, int, const void*, void*, int, int, int, int);

using nvmlInit_v2 = nvml_result();
using nvmlDeviceGetHandleByPciBusId_v2 = nvml_result(const char*, nvml_device*);
using nvmlDeviceGetMemoryInfo = nvml_result(nvml_device, nvml_memory*);
using nvmlDeviceGetTotalEccErrors = nvml_result(nvml_device, int, int, unsigned long long*);
using nvmlDeviceGetRetiredPagesPendingStatus = nvml_result(nvml_device, int*);
using nvmlDeviceGetRemappedRows = nvml_result(nvml_device, unsigned*, unsigned*, unsigned*,
                                              unsigned*);
using nvmlDeviceGetNvLinkState = nvml_result(nvml_device, unsigned, int*);
using nvmlDeviceGetNvLinkRemotePciInfo_v2 = nvml_result(nvml_device, unsigned, nvml_pci*);
using nvmlDeviceGetNvLinkRemoteDeviceType = nvml_result(nvml_device, unsigned, int*);

using ncclGetVersion = nccl_result(int*); ///< 22703: 2.27.3
using ncclGetUniqueId = nccl_result(nccl_unique_id*);
using ncclCommInitRank = nccl_result(nccl_communicator*, int, nccl_unique_id, int);
using ncclCommDestroy = nccl_result(nccl_communicator);
using ncclCommAbort = nccl_result(nccl_communicator);
using ncclCommGetAsyncError = nccl_result(nccl_communicator, nccl_result*);
using ncclGetErrorString = const char*(nccl_result);
using ncclGetLastError = const char*(nccl_communicator); ///< since 2.13
using ncclGroupStart = nccl_result();
using ncclGroupEnd = nccl_result();
using ncclAllReduce = nccl_result(const void*, void*, std::size_t, int, int, nccl_communicator,
                                  stream);
using ncclAllGather = nccl_result(const void*, void*, std::size_t, int, nccl_communicator, stream);

} // namespace signatures

} // namespace troupe::os::cuda
