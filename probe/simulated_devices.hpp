#pragma once

#include "probe/devices.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

/// Devices that do what a file says, to try the check before the start where there are none, or
/// none that is broken.
///
///     {"devices": [{"name": "simulated", "memory_mib": 81920, "used_mib": 512,
///                   "compute_ms": 40, "gigaflops": 600000, "copies": 2,
///                   "health": "", "failed": "", "does": ""}],
///      "pairs": [{"first": 0, "second": 1, "bandwidth": 20000, "back": 18000, "channels": 2,
///                 "failed": ""}],
///      "driver": "", "begins_after_ms": 0, "collectives": "NCCL 2.27.3",
///      "group_bandwidth": 40000, "group_failed": "", "group_does": ""}
///
/// Every member may be missing. `copies` stands for so many devices alike; `health` is what the
/// device says is broken, `failed` why it does not compute; `does` is "hang" or "crash", when it is
/// to compute; `driver` why there is none, and it begins after so many milliseconds. Between other
/// pairs there are no links. With others' devices in a group each message takes as long as it needs
/// at `group_bandwidth` MB/s, or it is told why there is no group, or what these devices do instead
/// of their first message.
namespace troupe::probe {

enum class misbehaviour { hang, crash };
/// Does it to this process; need not come back.
using misbehaves = std::function<void(misbehaviour)>;

/// Error: "line 3: …".
result<std::unique_ptr<device_port>> simulated_devices(std::string_view json, misbehaves misbehave);

} // namespace troupe::probe
