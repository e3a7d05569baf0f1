#include "runtime/os/probe/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

namespace troupe::os {

namespace {

using namespace cuda;

#define TROUPE_FUNCTION(library, name) (library).function<signatures::name>(#name)

nvml_result started(const loaded_library& library) {
  constexpr nvml_result not_there = -1;
  const auto init = TROUPE_FUNCTION(library, nvmlInit_v2);
  return init == nullptr ? not_there : init();
}

/// Domains are written with four or eight digits: "0000:3B:00.0", "00000000:3b:00.0".
std::string comparable(std::string_view bus) {
  std::string lower(bus.substr(0, bus.find('\0')));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.substr(std::min(lower.find_first_not_of('0'), lower.size()));
}

} // namespace

nvml::nvml() : library_({"libnvidia-ml.so.1"}), init_(started(library_)) {}

nvml_device nvml::device_at(const std::string& bus) const {
  const auto find = TROUPE_FUNCTION(library_, nvmlDeviceGetHandleByPciBusId_v2);
  nvml_device device = nullptr;
  if (!is_there() || find == nullptr || find(bus.c_str(), &device) != nvml_success)
    return nullptr;
  return device;
}

void nvml::add_facts(const std::string& bus, probe::device_facts& facts) const {
  const auto device = device_at(bus);
  if (device == nullptr)
    return;
  nvml_memory memory{};
  if (const auto ask = TROUPE_FUNCTION(library_, nvmlDeviceGetMemoryInfo);
      ask != nullptr && ask(device, &memory) == nvml_success) {
    facts.memory_bytes = memory.total;
    facts.memory_used_bytes = memory.used;
  }
  facts.health = health_of(device);
}

/// A device that does not support a question has nothing to say to it.
std::string nvml::health_of(nvml_device device) const {
  unsigned long long errors = 0;
  if (const auto ask = TROUPE_FUNCTION(library_, nvmlDeviceGetTotalEccErrors);
      ask != nullptr &&
      ask(device, nvml_uncorrected, nvml_since_driver_load, &errors) == nvml_success && errors > 0)
    return fmt::format("{} error{} of its memory that could not be corrected since the driver was "
                       "loaded: reset the device",
                       errors, errors == 1 ? "" : "s");
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (const auto ask = TROUPE_FUNCTION(library_, nvmlDeviceGetRemappedRows);
      ask != nullptr && ask(device, &corrected, &uncorrected, &pending, &failed) == nvml_success) {
    if (failed != 0)
      return "a broken row of its memory could not be replaced: the device must be replaced";
    if (pending != 0)
      return "a broken row of its memory waits to be replaced: reset the device";
  }
  int is_pending = 0;
  if (const auto ask = TROUPE_FUNCTION(library_, nvmlDeviceGetRetiredPagesPendingStatus);
      ask != nullptr && ask(device, &is_pending) == nvml_success && is_pending == nvml_enabled)
    return "a broken page of its memory waits to be retired: reset the device";
  return {};
}

nvml::ends nvml::links_of(nvml_device device, const std::string& other_bus) const {
  const auto state = TROUPE_FUNCTION(library_, nvmlDeviceGetNvLinkState);
  const auto kind = TROUPE_FUNCTION(library_, nvmlDeviceGetNvLinkRemoteDeviceType);
  const auto remote = TROUPE_FUNCTION(library_, nvmlDeviceGetNvLinkRemotePciInfo_v2);
  ends found;
  for (unsigned link = 0; state != nullptr && link < nvml_links_max; ++link) {
    int is_up = 0, type = 0;
    nvml_pci place{};
    if (state(device, link, &is_up) != nvml_success || is_up != nvml_enabled)
      continue;
    if (kind != nullptr && kind(device, link, &type) == nvml_success &&
        type == nvml_remote_is_switch)
      ++found.to_switches;
    else if (remote != nullptr && remote(device, link, &place) == nvml_success &&
             comparable({place.bus_id, sizeof place.bus_id}) == comparable(other_bus))
      ++found.direct;
  }
  return found;
}

result<std::uint32_t> nvml::links(const std::string& bus, const std::string& other_bus) const {
  const auto first = device_at(bus), second = device_at(other_bus);
  if (first == nullptr || second == nullptr)
    return failure(errc::absent, "NVIDIA's management library (libnvidia-ml.so.1) does not say "
                                 "what is between them");
  const auto here = links_of(first, other_bus), there = links_of(second, bus);
  return std::min(here.direct, there.direct) + std::min(here.to_switches, there.to_switches);
}

} // namespace troupe::os
