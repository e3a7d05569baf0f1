#pragma once

#include "probe/devices.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/probe/cuda_abi.hpp"
#include "runtime/os/probe/loaded_library.hpp"

#include <cstdint>
#include <string>

namespace troupe::os {

/// NVIDIA's management library: what a device says of itself. It asks the driver, and needs no
/// memory of a device.
///
/// Of health it knows errors of memory that were not corrected since the driver was loaded, and
/// repairs of memory that wait for a reset or have failed. Xid errors are only in the kernel's log,
/// which a container does not see; they are not asked for.
class nvml {
 public:
  nvml();

  bool is_there() const { return init_ == cuda::nvml_success; }

  /// Memory and health; as they were if the library does not say. `bus`: the device's PCI address.
  void add_facts(const std::string& bus, probe::device_facts& facts) const;
  /// NVLinks that are up between two devices, direct or by a switch.
  result<std::uint32_t> links(const std::string& bus, const std::string& other_bus) const;

 private:
  struct ends {
    std::uint32_t direct = 0, to_switches = 0;
  };

  cuda::nvml_device device_at(const std::string& bus) const;
  std::string health_of(cuda::nvml_device device) const;
  ends links_of(cuda::nvml_device device, const std::string& other_bus) const;

  const loaded_library library_;
  cuda::nvml_result init_;
};

} // namespace troupe::os
