#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "probe/devices.hpp"

#include <functional>
#include <string>

/// What a node finds out about itself, over the port of its devices.
///
/// Which facts make a node fail is decided here, for all kinds of devices alike:
///
///     the devices cannot be listed, or there is none     the driver is broken
///     a device says that something in it is broken       it fails sooner or later
///     much of its memory is in use before the start      another process trains on it
///     it did not compute, or computed wrongly
///     a pair of --box-pairs is slower, or has fewer channels, than it must
///
/// A node that is slow does not fail: only a comparison with other nodes can tell that it is.
namespace troupe::probe {

/// Told before each step that a driver may never come back from: "device 3: products of matrices".
using step_told = std::function<void(const std::string& what)>;

/// Carries out what is wanted. Takes as long as the devices do; `withinMs` is the business of
/// whatever runs this process. The report has the number of `wanted` and this node's name.
messages::msg<messages::NodeProbed>
probe_node(device_port& devices, const messages::msg<messages::NodeProbeWanted>& wanted,
           const std::string& node, const step_told& at);

/// The report of a node whose devices could not be probed, for this reason.
messages::msg<messages::NodeProbed>
not_probed(const messages::msg<messages::NodeProbeWanted>& wanted, const std::string& node,
           const std::string& why);

/// One line, of a length that a report can carry.
std::string report_line(std::string text);

} // namespace troupe::probe
