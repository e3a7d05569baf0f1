#include "probe/node_probe.hpp"

#include "probe/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe::probe {

namespace {

using messages::NodeProbed;
using messages::NodeProbeWanted;

constexpr auto author_name = "probe";

/// "24.1", "80".
std::string gibibytes(std::uint64_t bytes) {
  auto text = fmt::format("{:.1f}", static_cast<double>(bytes) / (1u << 30));
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0)
    text.resize(text.size() - 2);
  return text;
}

bool is_in_use(const device_facts& device) {
  // In this order nothing overflows: a device has less than 2^57 bytes.
  return device.memory_bytes > 0 &&
         device.memory_used_bytes * 100 >= device.memory_bytes * limits::memory_in_use_percent;
}

struct device_found {
  device_facts facts;
  computed work;
  std::string failed;
};

struct pair_found {
  std::uint32_t first = 0, second = 0;
  std::uint64_t bandwidth = 0;
  std::uint32_t channels = 0;
  std::string failed;
};

/// One probe of one node.
class probing {
 public:
  probing(device_port& devices, const step_told& at, bool trained)
      : devices_(devices), at_(at), trained_(trained) {}

  void look_at_devices() {
    at_("the list of devices");
    auto all = devices_.list();
    if (!all)
      return fail(all.error().what);
    if (all->empty())
      return fail("this node has no device at all");
    if (all->size() > limits::probed_devices_max)
      return fail(fmt::format("this node has {} devices; at most {} are probed", all->size(),
                              limits::probed_devices_max));
    for (auto& facts : *all) {
      devices_found.push_back({std::move(facts), {}, {}});
      look_at(devices_found.back());
    }
    if (devices_.has_accelerators())
      collectives = devices_.collectives();
  }

  void look_at_box(NodeProbeWanted::Reader wanted) {
    if (!wanted.hasBox() || devices_found.empty())
      return;
    const auto box = wanted.getBox();
    if (!devices_.has_accelerators())
      return fail("--switchbox-check: this node has no accelerators, and so no switches between "
                  "them");
    if (box.getPairs().size() > limits::box_pairs_max)
      return fail(fmt::format("--box-pairs: {} pairs; at most {} are possible",
                              box.getPairs().size(), limits::box_pairs_max));
    for (const auto pair : box.getPairs()) {
      pairs_found.push_back({pair.getFirst(), pair.getSecond(), 0, 0, {}});
      auto& found = pairs_found.back();
      found.failed = report_line(what_fails(found, box.getMinBandwidth(), box.getMinChannels()));
      if (!found.failed.empty())
        fail(found.failed);
    }
  }

  /// The first thing that fails, and how many others do.
  std::string failed() const {
    if (failures_ < 2)
      return first_failure_;
    const auto others = fmt::format(" (and {} more)", failures_ - 1);
    return first_failure_.substr(0, limits::failure_line_max - others.size()) + others;
  }

  std::vector<device_found> devices_found;
  std::vector<pair_found> pairs_found;
  std::string collectives;

 private:
  void fail(const std::string& why) {
    if (++failures_ == 1)
      first_failure_ = report_line(why);
  }

  std::string called(const device_facts& device) const {
    return devices_.has_accelerators() ? fmt::format("device {}", device.index)
                                       : std::string("the processors");
  }

  /// What is broken or in use is not computed on: that would only disturb the one that uses it.
  void look_at(device_found& device) {
    const auto name = called(device.facts);
    if (!device.facts.health.empty())
      device.failed = fmt::format("{}: {}", name, device.facts.health);
    else if (!trained_ && is_in_use(device.facts))
      device.failed = fmt::format("{} has {} of {} GiB of its memory in use already: another "
                                  "process trains on it",
                                  name, gibibytes(device.facts.memory_used_bytes),
                                  gibibytes(device.facts.memory_bytes));
    else {
      at_(name + ": products of matrices");
      if (auto work = devices_.compute(device.facts.index))
        device.work = *work;
      else
        device.failed = fmt::format("{}: {}", name, work.error().what);
    }
    device.failed = report_line(device.failed);
    if (!device.failed.empty())
      fail(device.failed);
  }

  bool is_there(std::uint32_t index) const {
    return std::any_of(devices_found.begin(), devices_found.end(),
                       [index](const auto& d) { return d.facts.index == index; });
  }

  std::string what_fails(pair_found& pair, std::uint64_t bandwidth_min,
                         std::uint32_t channels_min) {
    const auto named = fmt::format("--box-pairs {}:{}", pair.first, pair.second);
    if (!is_there(pair.first) || !is_there(pair.second))
      return fmt::format("{}: this node has {} device{}", named, devices_found.size(),
                         devices_found.size() == 1 ? "" : "s");
    if (pair.first == pair.second)
      return fmt::format("{}: a pair is of two devices", named);
    if (auto failed = measure_bandwidth(pair, bandwidth_min))
      return *failed;
    at_(fmt::format("devices {} and {}: channels between them", pair.first, pair.second));
    const auto channels = devices_.channels(pair.first, pair.second);
    if (!channels && channels_min > 0)
      return fmt::format("devices {} and {}: {}", pair.first, pair.second, channels.error().what);
    pair.channels = channels.value_or(0);
    if (pair.channels >= channels_min)
      return {};
    return fmt::format("devices {} and {} have {} channel{} between them that {} up, and at least "
                       "{} must be (--min-channels)",
                       pair.first, pair.second, pair.channels, pair.channels == 1 ? "" : "s",
                       pair.channels == 1 ? "is" : "are", channels_min);
  }

  /// Both directions; what counts is the worse one.
  std::optional<std::string> measure_bandwidth(pair_found& pair, std::uint64_t bandwidth_min) {
    std::optional<std::uint64_t> worse;
    auto from = pair.first, to = pair.second;
    for (const auto& [a, b] : {std::pair(pair.first, pair.second), {pair.second, pair.first}}) {
      at_(fmt::format("copies from device {} to device {}", a, b));
      const auto measured = devices_.copy_bandwidth(a, b);
      if (!measured)
        return fmt::format("copies from device {} to device {}: {}", a, b, measured.error().what);
      if (!worse || *measured < *worse) {
        worse = *measured;
        from = a;
        to = b;
      }
    }
    pair.bandwidth = *worse;
    if (*worse >= bandwidth_min)
      return std::nullopt;
    return fmt::format("copies from device {} to device {} make {} MB/s, and at least {} are "
                       "expected (--min-bandwidth)",
                       from, to, *worse, bandwidth_min);
  }

  device_port& devices_;
  const step_told& at_;
  const bool trained_;
  std::string first_failure_;
  std::size_t failures_ = 0;
};

std::uint64_t microseconds(duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

void write(const probing& found, NodeProbed::Builder to) {
  auto slowest = duration::zero();
  auto devices = to.initDevices(static_cast<unsigned>(found.devices_found.size()));
  for (unsigned n = 0; n < devices.size(); ++n) {
    const auto& device = found.devices_found[n];
    devices[n].setIndex(device.facts.index);
    devices[n].setName(device.facts.name.substr(0, limits::name_max));
    devices[n].setMemoryBytes(device.facts.memory_bytes);
    devices[n].setMemoryUsedBytes(device.facts.memory_used_bytes);
    devices[n].setComputeUs(microseconds(device.work.took));
    devices[n].setGigaflops(device.work.gigaflops);
    devices[n].setFailed(device.failed);
    slowest = std::max(slowest, device.work.took);
  }
  auto pairs = to.initPairs(static_cast<unsigned>(found.pairs_found.size()));
  for (unsigned n = 0; n < pairs.size(); ++n) {
    const auto& pair = found.pairs_found[n];
    pairs[n].setFirst(pair.first);
    pairs[n].setSecond(pair.second);
    pairs[n].setBandwidth(pair.bandwidth);
    pairs[n].setChannels(pair.channels);
    pairs[n].setFailed(pair.failed);
  }
  to.setSeconds(std::chrono::duration<double>(slowest).count());
  to.setFailed(found.failed());
  to.setCollectives(found.collectives.substr(0, limits::name_max));
  to.setRanks(found.collectives.empty() ? 0 : devices.size());
}

} // namespace

std::string report_line(std::string text) {
  for (auto& character : text)
    if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f)
      character = ' ';
  text.resize(std::min(text.size(), limits::failure_line_max));
  return text;
}

messages::msg<NodeProbed> probe_node(device_port& devices,
                                     const messages::msg<NodeProbeWanted>& wanted,
                                     const std::string& node, const step_told& at) {
  auto what = wanted.read();
  probing probe(devices, at, what->getTrained());
  probe.look_at_devices();
  probe.look_at_box(*what);
  return messages::local<NodeProbed>(author_name, [&](NodeProbed::Builder to) {
    to.setNode(node);
    to.setCheck(what->getCheck());
    write(probe, to);
  });
}

messages::msg<NodeProbed> not_probed(const messages::msg<NodeProbeWanted>& wanted,
                                     const std::string& node, const std::string& why) {
  return messages::local<NodeProbed>(author_name, [&](NodeProbed::Builder to) {
    to.setNode(node);
    to.setCheck(wanted.read()->getCheck());
    to.setFailed(report_line(why));
  });
}

} // namespace troupe::probe
