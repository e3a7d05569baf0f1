// The headers of CUDA's driver and of NVML say the same as cuda_abi.hpp. Compiled by tests/cuda,
// never run. cuBLAS's function is compared by trace/abi_check.cpp.

#include "runtime/os/probe/abi_compared.hpp"
#include "runtime/os/probe/cuda_abi.hpp"

#include <cuda.h>
#include <nvml.h>

namespace {

using namespace troupe::os::cuda;

TROUPE_SAME(cuInit);
TROUPE_SAME(cuDriverGetVersion);
TROUPE_SAME(cuGetErrorString);
TROUPE_SAME(cuDeviceGetCount);
TROUPE_SAME(cuDeviceGet);
TROUPE_SAME(cuDeviceGetName);
TROUPE_SAME(cuDeviceTotalMem_v2);
TROUPE_SAME(cuDeviceGetAttribute);
TROUPE_SAME(cuDeviceGetPCIBusId);
TROUPE_SAME(cuDevicePrimaryCtxRetain);
TROUPE_SAME(cuCtxSetCurrent);
TROUPE_SAME(cuCtxEnablePeerAccess);
TROUPE_SAME(cuDeviceCanAccessPeer);
TROUPE_SAME(cuMemAlloc_v2);
TROUPE_SAME(cuMemFree_v2);
TROUPE_SAME(cuMemcpyHtoD_v2);
TROUPE_SAME(cuMemcpyDtoH_v2);
TROUPE_SAME(cuMemcpyPeerAsync);
TROUPE_SAME(cuEventCreate);
TROUPE_SAME(cuEventDestroy_v2);
TROUPE_SAME(cuEventRecord);
TROUPE_SAME(cuEventSynchronize);
#if CUDA_VERSION >= 13000
// The library has both; the header declares the second one alone, under the first one's name.
#undef cuEventElapsedTime
static_assert(compared<decltype(::cuEventElapsedTime_v2), signatures::cuEventElapsedTime>::value);
#else
TROUPE_SAME(cuEventElapsedTime);
#endif
TROUPE_SAME(cuStreamQuery);

TROUPE_SAME(nvmlInit_v2);
TROUPE_SAME(nvmlDeviceGetHandleByPciBusId_v2);
TROUPE_SAME(nvmlDeviceGetMemoryInfo);
TROUPE_SAME(nvmlDeviceGetTotalEccErrors);
TROUPE_SAME(nvmlDeviceGetRetiredPagesPendingStatus);
TROUPE_SAME(nvmlDeviceGetRemappedRows);
TROUPE_SAME(nvmlDeviceGetNvLinkState);
TROUPE_SAME(nvmlDeviceGetNvLinkRemotePciInfo_v2);
TROUPE_SAME(nvmlDeviceGetNvLinkRemoteDeviceType);

static_assert(CUDA_SUCCESS == success && CUDA_ERROR_NO_DEVICE == no_device &&
              CUDA_ERROR_NOT_READY == not_ready);
static_assert(static_cast<int>(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) ==
              peer_access_already_enabled);
static_assert(static_cast<int>(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) ==
              attribute_multiprocessors);
static_assert(static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ==
              attribute_capability_major);
static_assert(NVML_SUCCESS == nvml_success);
static_assert(static_cast<int>(NVML_MEMORY_ERROR_TYPE_UNCORRECTED) == nvml_uncorrected);
static_assert(static_cast<int>(NVML_VOLATILE_ECC) == nvml_since_driver_load);
static_assert(static_cast<int>(NVML_FEATURE_ENABLED) == nvml_enabled);
static_assert(static_cast<int>(NVML_NVLINK_DEVICE_TYPE_SWITCH) == nvml_remote_is_switch);
static_assert(NVML_NVLINK_MAX_LINKS >= nvml_links_max);
static_assert(sizeof(nvmlMemory_t) == sizeof(nvml_memory));
static_assert(offsetof(nvmlMemory_t, used) == offsetof(nvml_memory, used));
static_assert(sizeof(nvmlPciInfo_t) == sizeof(nvml_pci));
static_assert(offsetof(nvmlPciInfo_t, busId) == offsetof(nvml_pci, bus_id));

} // namespace
