// CUDA's driver as the probe sees it, for tests: memory is the machine's, and each event is half a
// millisecond behind the one before it. FAKE_DEVICES: how many; FAKE_INIT: what cuInit answers;
// FAKE_VERSION: its own; FAKE_NO_MEMORY: the device that gives none.

#include "runtime/os/probe/testing/fake_cuda.hpp"

#include "runtime/os/probe/cuda_abi.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace troupe::os::cuda;

namespace {

context current;
constexpr driver_result out_of_memory = 2;

context context_of(device d) {
  return reinterpret_cast<context>(static_cast<std::uintptr_t>(d) + 1);
}

} // namespace

extern "C" {

int fake_setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? -1 : std::atoi(value);
}

int fake_current_device() {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(current)) - 1;
}

driver_result cuInit(unsigned) {
  const int answer = fake_setting("FAKE_INIT");
  return answer < 0 ? success : answer;
}

driver_result cuDriverGetVersion(int* version) {
  const int said = fake_setting("FAKE_VERSION");
  *version = said < 0 ? 12'040 : said;
  return success;
}

driver_result cuGetErrorString(driver_result, const char** text) {
  *text = "what the driver says";
  return success;
}

driver_result cuDeviceGetCount(int* count) {
  *count = fake_setting("FAKE_DEVICES");
  return success;
}

driver_result cuDeviceGet(device* d, int index) {
  *d = index;
  return success;
}

driver_result cuDeviceGetName(char* name, int size, device d) {
  std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU %d", d);
  return success;
}

driver_result cuDeviceTotalMem_v2(std::size_t* bytes, device) {
  *bytes = std::size_t{80} << 30;
  return success;
}

driver_result cuDeviceGetAttribute(int* value, int which, device d) {
  // The second one is too old for bfloat16.
  *value = which == attribute_capability_major ? 9 - 2 * (d % 2) : 1;
  return success;
}

driver_result cuDeviceGetPCIBusId(char* bus, int size, device d) {
  std::snprintf(bus, static_cast<std::size_t>(size), "0000:%02X:00.0", d + 10);
  return success;
}

driver_result cuDevicePrimaryCtxRetain(context* made, device d) {
  *made = context_of(d);
  return success;
}

driver_result cuCtxSetCurrent(context other) {
  current = other;
  return success;
}

driver_result cuCtxEnablePeerAccess(context, unsigned) {
  static bool enabled = false;
  return std::exchange(enabled, true) ? peer_access_already_enabled : success;
}

driver_result cuDeviceCanAccessPeer(int* can, device, device) {
  *can = 1;
  return success;
}

driver_result cuMemAlloc_v2(pointer* at, std::size_t bytes) {
  if (fake_setting("FAKE_NO_MEMORY") == fake_current_device())
    return out_of_memory;
  *at = reinterpret_cast<pointer>(std::malloc(bytes));
  return success;
}

driver_result cuMemFree_v2(pointer at) {
  std::free(reinterpret_cast<void*>(at));
  return success;
}

driver_result cuMemcpyHtoD_v2(pointer to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return success;
}

driver_result cuMemcpyDtoH_v2(void* to, pointer from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return success;
}

driver_result cuMemcpyPeerAsync(pointer, context to, pointer, context from, std::size_t, stream) {
  return to != from && from == current ? success : out_of_memory;
}

driver_result cuEventCreate(event* made, unsigned) {
  *made = reinterpret_cast<event>(std::malloc(1));
  return success;
}

driver_result cuEventDestroy_v2(event made) {
  std::free(made);
  return success;
}

driver_result cuEventRecord(event, stream) {
  return success;
}

driver_result cuEventSynchronize(event) {
  return success;
}

/// What NCCL has begun and never ends.
int fake_is_busy;

driver_result cuStreamQuery(stream) {
  return fake_is_busy != 0 ? not_ready : success;
}

driver_result cuEventElapsedTime(float* milliseconds, event, event) {
  *milliseconds = 0.5f;
  return success;
}

} // extern "C"
