#include "probe/ring_core.hpp"

#include <fmt/format.h>

/// What is said when the time of a ring's probe is over, or another takes its place.
namespace troupe::probe {

std::string ring_core::late(instant now) const {
  const auto after = "after " + in_words(now - began_) + ": ";
  if (!connected_)
    return after + fmt::format("{} could not be reached: {}", next(),
                               refused_.empty() ? "no answer" : refused_);
  if (!previous_connected_)
    return after + fmt::format("{} did not connect", previous());
  if (by_devices_ && all_received())
    return after + devices_late();
  if (all_received())
    return after + fmt::format("{} did not take what was sent", next());
  if (by_devices_)
    return after + fmt::format("{} did not pass on what goes around", previous());
  constexpr double mega = 1e6;
  return after + fmt::format("{:.1f} of {:.1f} MB had come from {}",
                             static_cast<double>(taken_) / mega,
                             static_cast<double>(program_.bytes(sizes_)) / mega, previous());
}

std::string ring_core::devices_late() const {
  if (!devices_.begun)
    return fmt::format("{} gave no key for the devices", previous());
  if (!devices_.own)
    return "its devices have not answered";
  return fmt::format("the devices of {} have not passed", late_member());
}

const node_name& ring_core::late_member() const {
  static const node_name itself;
  if (!connected_)
    return next();
  if (!by_devices_ || !all_received())
    return all_received() ? next() : previous();
  if (!devices_.begun)
    return previous();
  if (!devices_.own)
    return itself;
  return devices_.previous_passed ? next() : previous();
}

} // namespace troupe::probe
