#include "probe/group_probe.hpp"

#include "probe/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::probe {

namespace {

using messages::DevicesProbeWanted;
using messages::GroupProbed;
using messages::msg;

constexpr auto group_author = "probe";

struct size_found {
  std::uint64_t bytes = 0;
  duration reduced{}, gathered{};
};

struct found {
  std::vector<size_found> sizes;
  std::string failed;
};

group_place place_of(messages::GroupProbeWanted::Reader group) {
  group_place place{group.getDevices(), group.getFirstRank(), group.getRanks(), 0};
  for (const auto bytes : group.getSizes())
    place.bytes_max = std::max(place.bytes_max, bytes);
  return place;
}

/// The key first: the others wait for it, and get ready while these devices do.
result<std::unique_ptr<device_group>> joined(device_port& devices,
                                             DevicesProbeWanted::Reader wanted, const step_told& at,
                                             const key_told& tell) {
  const auto given = wanted.getKey().asChars();
  std::string key(given.begin(), given.size());
  if (key.empty()) {
    at("a key for the group");
    auto made = devices.make_group_key();
    if (!made)
      return tl::make_unexpected(made.error());
    key = std::move(*made);
    tell(key);
  }
  at("the list of devices");
  const auto all = devices.list();
  if (!all)
    return tl::make_unexpected(all.error());
  const auto place = place_of(wanted.getGroup());
  if (all->size() != place.devices)
    return failure(errc::refused, fmt::format("this node has {} devices, and had {} when it was "
                                              "probed by itself",
                                              all->size(), place.devices));
  at(fmt::format("{}: joining ranks {} to {} of {}", devices.collectives(), place.first_rank,
                 place.first_rank + place.devices - 1, place.ranks));
  return devices.join_group(key, place);
}

/// What follows a failure is not tried: the others have lost this node's part in it.
found measured(device_port& devices, DevicesProbeWanted::Reader wanted, const step_told& at,
               const key_told& tell) {
  found all;
  const auto group = joined(devices, wanted, at, tell);
  if (!group) {
    all.failed = group.error().what;
    return all;
  }
  const auto repeats = wanted.getGroup().getRepeats();
  for (const auto bytes : wanted.getGroup().getSizes()) {
    at(fmt::format("all-reduce of {} bytes", bytes));
    const auto reduced = (*group)->all_reduce(bytes, repeats);
    if (reduced)
      at(fmt::format("all-gather of {} bytes", bytes));
    const auto gathered = reduced ? (*group)->all_gather(bytes, repeats) : reduced;
    if (!gathered) {
      all.failed = gathered.error().what;
      return all;
    }
    all.sizes.push_back({bytes, *reduced, *gathered});
  }
  at("leaving the group");
  return all;
}

void write_numbers(GroupProbed::Builder to, DevicesProbeWanted::Reader wanted,
                   const std::string& node) {
  const auto group = wanted.getGroup();
  to.setNode(node);
  to.setCheck(group.getCheck());
  to.setRound(group.getRound());
  to.setGroup(group.getGroup());
}

/// Never 0, which would mean that nothing was measured.
std::uint64_t measured_microseconds(duration d) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(d).count()));
}

} // namespace

msg<GroupProbed> probe_group(device_port& devices, const msg<DevicesProbeWanted>& wanted,
                             const std::string& node, const step_told& at, const key_told& tell) {
  auto what = wanted.read();
  const auto all = measured(devices, *what, at, tell);
  if (!all.failed.empty())
    return group_not_probed(wanted, node, all.failed);
  return messages::local<GroupProbed>(group_author, [&](GroupProbed::Builder to) {
    write_numbers(to, *what, node);
    auto took = duration::zero();
    auto sizes = to.initSizes(static_cast<unsigned>(all.sizes.size()));
    for (unsigned n = 0; n < sizes.size(); ++n) {
      const auto& of = all.sizes[n];
      sizes[n].setBytes(of.bytes);
      sizes[n].setAllReduceUs(measured_microseconds(of.reduced));
      sizes[n].setAllGatherUs(measured_microseconds(of.gathered));
      took += what->getGroup().getRepeats() * (of.reduced + of.gathered);
    }
    to.setSeconds(std::chrono::duration<double>(took).count());
  });
}

msg<GroupProbed> group_not_probed(const msg<DevicesProbeWanted>& wanted, const std::string& node,
                                  const std::string& why) {
  return messages::local<GroupProbed>(group_author, [&](GroupProbed::Builder to) {
    write_numbers(to, *wanted.read(), node);
    to.setFailed(report_line(why));
  });
}

std::string wrong_values(const char* collective, std::uint64_t bytes) {
  return fmt::format("what came out of an {} of {} bytes is wrong: a memory, a device or a network "
                     "damages data",
                     collective, bytes);
}

} // namespace troupe::probe
