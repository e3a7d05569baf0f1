#pragma once

#include "probe/devices.hpp"

#include <memory>
#include <string>

namespace troupe::os {

/// A file that describes devices to be simulated, instead of those that are there.
constexpr auto simulated_devices_variable = "TROUPE_PROBE_DEVICES";

/// The devices that training on this node would use: those that `simulated` describes, if it is not
/// empty, else NVIDIA's, else the processors. `own_program`: the file of `troupe`, beside whose
/// environment of Python libraries are looked for.
///
/// In a process of its own: a driver is loaded, and may take it along.
result<std::unique_ptr<probe::device_port>> node_devices(const std::string& simulated,
                                                         const std::string& own_program);

} // namespace troupe::os
