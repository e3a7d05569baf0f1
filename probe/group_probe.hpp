#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "probe/devices.hpp"
#include "probe/node_probe.hpp"

#include <functional>
#include <string>

/// What a node's devices find out together with those of other nodes, over the port of its devices.
///
/// A node whose devices work by themselves may still be cut off from the network that training
/// uses, or reach it at a tenth of its speed: a link of TCP shows neither. So the devices of a
/// group reduce and gather as training does, with the library that training uses.
namespace troupe::probe {

/// Told to the others of the group, before anything else is done.
using key_told = std::function<void(const std::string& key)>;

/// Carries out what is wanted, size by size. Takes as long as the devices and the others do. The
/// report has the numbers of `wanted` and this node's name.
messages::msg<messages::GroupProbed>
probe_group(device_port& devices, const messages::msg<messages::DevicesProbeWanted>& wanted,
            const std::string& node, const step_told& at, const key_told& tell);

/// The report of devices that could not be probed with others', for this reason.
messages::msg<messages::GroupProbed>
group_not_probed(const messages::msg<messages::DevicesProbeWanted>& wanted, const std::string& node,
                 const std::string& why);

/// The reason of a device_group whose values are wrong.
std::string wrong_values(const char* collective, std::uint64_t bytes);

} // namespace troupe::probe
