#pragma once

#include "probe/devices.hpp"

#include <memory>
#include <string>

namespace troupe::os {

/// DEVICE,PLUGIN,PYTHON: devices are looked at through PyTorch, by the name that it has for them
/// ("npu"), with the module that teaches it these devices ("torch_npu"; may be empty), in this
/// interpreter.
constexpr auto torch_devices_variable = "TROUPE_PROBE_TORCH";

/// The devices of vendors whose libraries are not called here. A Python process with PyTorch lists
/// them, has them make products, and copies between them; it lives as long as the port. Links are
/// not counted, and there are no groups: nodes are checked with each other over TCP.
///
/// Error: `how` is not of that form, or the interpreter cannot import PyTorch and the plug-in.
result<std::unique_ptr<probe::device_port>> torch_devices(const std::string& how);

} // namespace troupe::os
