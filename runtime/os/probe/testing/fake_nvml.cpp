// NVML as the probe sees it, for tests. FAKE_USED, FAKE_ECC, FAKE_REMAP, FAKE_UNREPAIRED and
// FAKE_RETIRED: the device that has memory in use or is broken so. Each has two links to its
// neighbour and two to a switch; FAKE_LINK_DOWN: the device of which one to the switch is down.

#include "runtime/os/probe/cuda_abi.hpp"

#include <cstdio>
#include <cstdlib>

using namespace troupe::os::cuda;

namespace {

constexpr nvml_result not_supported = 3, not_found = 6;
constexpr unsigned direct_links = 2, links = 4;

int index_of(nvml_device device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

bool is(const char* setting, nvml_device device) {
  const char* value = std::getenv(setting);
  return value != nullptr && std::atoi(value) == index_of(device);
}

} // namespace

extern "C" {

nvml_result nvmlInit_v2() {
  return nvml_success;
}

nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char* bus, nvml_device* device) {
  unsigned domain = 0, number = 0;
  if (std::sscanf(bus, "%x:%x:", &domain, &number) != 2)
    return not_found;
  *device = reinterpret_cast<nvml_device>(static_cast<std::uintptr_t>(number - 10 + 1));
  return nvml_success;
}

nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory* memory) {
  memory->total = 80ull << 30;
  memory->used = is("FAKE_USED", device) ? 40ull << 30 : 1ull << 29;
  memory->free = memory->total - memory->used;
  return nvml_success;
}

nvml_result nvmlDeviceGetTotalEccErrors(nvml_device device, int kind, int counter,
                                        unsigned long long* count) {
  *count = is("FAKE_ECC", device) && kind == nvml_uncorrected && counter == nvml_since_driver_load
               ? 2
               : 0;
  return nvml_success;
}

nvml_result nvmlDeviceGetRetiredPagesPendingStatus(nvml_device device, int* is_pending) {
  *is_pending = nvml_enabled;
  return is("FAKE_RETIRED", device) ? nvml_success : not_supported;
}

nvml_result nvmlDeviceGetRemappedRows(nvml_device device, unsigned* corrected,
                                      unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 1;
  *pending = is("FAKE_REMAP", device) ? 1 : 0;
  *failed = is("FAKE_UNREPAIRED", device) ? 1 : 0;
  return nvml_success;
}

nvml_result nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, int* is_up) {
  if (link >= links)
    return not_supported;
  *is_up = is("FAKE_LINK_DOWN", device) && link == direct_links ? 0 : nvml_enabled;
  return nvml_success;
}

nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device, unsigned link, int* type) {
  *type = link < direct_links ? 0 : nvml_remote_is_switch;
  return nvml_success;
}

nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned, nvml_pci* place) {
  const auto neighbour = index_of(device) ^ 1;
  std::snprintf(place->bus_id, sizeof place->bus_id, "00000000:%02X:00.0",
                static_cast<unsigned>(neighbour + 10));
  return nvml_success;
}

} // extern "C"
