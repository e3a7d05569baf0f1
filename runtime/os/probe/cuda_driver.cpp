#include "runtime/os/probe/cuda_driver.hpp"

#include <fmt/format.h>

#include <string>

namespace troupe::os {

result<std::unique_ptr<cuda_driver>> cuda_driver::load() {
  auto driver = std::make_unique<cuda_driver>();
  driver->library = loaded_library({"libcuda.so.1"});
  if (!driver->library)
    return std::unique_ptr<cuda_driver>();
  std::string missing;
  const auto take = [&](auto*& function, const char* name) {
    function = driver->library.function<std::remove_reference_t<decltype(*function)>>(name);
    if (function == nullptr)
      missing = name;
  };
  take(driver->init, "cuInit");
  take(driver->version, "cuDriverGetVersion");
  take(driver->error_string, "cuGetErrorString");
  take(driver->device_count, "cuDeviceGetCount");
  take(driver->get_device, "cuDeviceGet");
  take(driver->device_name, "cuDeviceGetName");
  take(driver->total_memory, "cuDeviceTotalMem_v2");
  take(driver->attribute, "cuDeviceGetAttribute");
  take(driver->bus_id, "cuDeviceGetPCIBusId");
  take(driver->retain_context, "cuDevicePrimaryCtxRetain");
  take(driver->set_current, "cuCtxSetCurrent");
  take(driver->enable_peer, "cuCtxEnablePeerAccess");
  take(driver->can_access_peer, "cuDeviceCanAccessPeer");
  take(driver->allocate, "cuMemAlloc_v2");
  take(driver->release, "cuMemFree_v2");
  take(driver->to_device, "cuMemcpyHtoD_v2");
  take(driver->to_host, "cuMemcpyDtoH_v2");
  take(driver->copy_to_peer, "cuMemcpyPeerAsync");
  take(driver->create_event, "cuEventCreate");
  take(driver->destroy_event, "cuEventDestroy_v2");
  take(driver->record, "cuEventRecord");
  take(driver->wait_for, "cuEventSynchronize");
  take(driver->elapsed, "cuEventElapsedTime");
  take(driver->ask_stream, "cuStreamQuery");
  if (!missing.empty())
    return failure(errc::refused, fmt::format("the NVIDIA driver (libcuda.so.1) is too old: it has "
                                              "no {}",
                                              missing));
  return driver;
}

result<void> cuda_driver::check(cuda::driver_result code, const char* what) const {
  if (code == cuda::success)
    return {};
  const char* text = nullptr;
  if (error_string(code, &text) != cuda::success || text == nullptr)
    text = "unknown error";
  return failure(errc::refused, fmt::format("{}: {} (CUDA error {})", what, text, code));
}

} // namespace troupe::os
