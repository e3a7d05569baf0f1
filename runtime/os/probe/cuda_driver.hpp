#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/probe/cuda_abi.hpp"
#include "runtime/os/probe/loaded_library.hpp"

#include <memory>

namespace troupe::os {

/// CUDA's driver, with all functions that the probe calls.
struct cuda_driver {
  /// Null: there is none. Error: it lacks a function.
  static result<std::unique_ptr<cuda_driver>> load();

  /// Nothing if `code` is success; else what failed, in the driver's words.
  result<void> check(cuda::driver_result code, const char* what) const;

  loaded_library library;
  cuda::signatures::cuInit* init;
  cuda::signatures::cuDriverGetVersion* version;
  cuda::signatures::cuGetErrorString* error_string;
  cuda::signatures::cuDeviceGetCount* device_count;
  cuda::signatures::cuDeviceGet* get_device;
  cuda::signatures::cuDeviceGetName* device_name;
  cuda::signatures::cuDeviceTotalMem_v2* total_memory;
  cuda::signatures::cuDeviceGetAttribute* attribute;
  cuda::signatures::cuDeviceGetPCIBusId* bus_id;
  cuda::signatures::cuDevicePrimaryCtxRetain* retain_context;
  cuda::signatures::cuCtxSetCurrent* set_current;
  cuda::signatures::cuCtxEnablePeerAccess* enable_peer;
  cuda::signatures::cuDeviceCanAccessPeer* can_access_peer;
  cuda::signatures::cuMemAlloc_v2* allocate;
  cuda::signatures::cuMemFree_v2* release;
  cuda::signatures::cuMemcpyHtoD_v2* to_device;
  cuda::signatures::cuMemcpyDtoH_v2* to_host;
  cuda::signatures::cuMemcpyPeerAsync* copy_to_peer;
  cuda::signatures::cuEventCreate* create_event;
  cuda::signatures::cuEventDestroy_v2* destroy_event;
  cuda::signatures::cuEventRecord* record;
  cuda::signatures::cuEventSynchronize* wait_for;
  cuda::signatures::cuEventElapsedTime* elapsed;
  cuda::signatures::cuStreamQuery* ask_stream;
};

} // namespace troupe::os
