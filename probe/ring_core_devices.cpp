// The part of a ring in which the members' devices reduce and gather.

#include "probe/ring_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::probe {

using namespace messages;

/// Their process is to end by itself before this probe's time is over.
void ring_core::begin_devices(effects& out, instant now, const std::string& key) {
  devices_.begun = true;
  if (place_ + 1 < n_)
    devices_.key_to_give = key;
  const auto left = std::max<duration>(until_ - now - limits::devices_end_before, 1ms);
  out.push_back(probe_devices{author_.write<DevicesProbeWanted>({}, [&](auto b) {
    b.setGroup(*wanted_.read());
    b.getGroup().setWithinMs(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
    b.setKey(kj::arrayPtr(reinterpret_cast<const kj::byte*>(key.data()), key.size()));
  })});
  if (gives_.empty())
    give_key(out);
}

void ring_core::give_key(effects& out) {
  if (devices_.key_to_give.empty())
    return;
  const auto key = std::exchange(devices_.key_to_give, {});
  out.push_back(to_next{author_
                            .write<ProbeKey>({},
                                             [&](auto b) {
                                               b.setKey(kj::arrayPtr(
                                                   reinterpret_cast<const kj::byte*>(key.data()),
                                                   key.size()));
                                             })
                            .any()});
}

ring_core::effects ring_core::key(instant now, const msg<ProbeKey>& m) {
  effects out;
  if (ended_)
    return out;
  auto said = m.read();
  const auto given = said->getKey().asChars();
  if (!by_devices_ || place_ == 0 || !all_received() || devices_.begun || given.size() == 0 ||
      given.size() > limits::probe_key_max)
    fail(out, now,
         fmt::format("{} gave a key of {} bytes that is not due", previous(), given.size()),
         previous());
  else
    begin_devices(out, now, {given.begin(), given.size()});
  return out;
}

ring_core::effects ring_core::key_made(instant now, const std::string& key) {
  effects out;
  if (ended_ || !devices_.begun || place_ != 0)
    return out;
  if (key.empty() || key.size() > limits::probe_key_max) {
    fail(out, now, fmt::format("its devices have made a key of {} bytes", key.size()), {});
    return out;
  }
  devices_.key_to_give = key;
  pump(out, now);
  return out;
}

ring_core::effects ring_core::devices_probed(instant now, const msg<GroupProbed>& m) {
  effects out;
  if (ended_ || !devices_.begun || devices_.own)
    return out;
  auto found = m.read();
  devices_.own = m;
  const std::string failed = found->getFailed().cStr();
  const auto sizes = found->getSizes();
  bool whole = sizes.size() == sizes_.size();
  for (unsigned i = 0; whole && i < sizes.size(); ++i)
    whole = sizes[i].getBytes() == sizes_[i];
  if (!failed.empty() || !whole) {
    fail(out, now, failed.empty() ? "its devices have not measured what they were to" : failed, {});
    return out;
  }
  out.push_back(to_next{author_.write<ProbePassed>({}, [](auto) {}).any()});
  out.push_back(to_previous{author_.write<ProbePassed>({}, [](auto) {}).any()});
  end_if_devices_passed(out, now);
  return out;
}

ring_core::effects ring_core::next_passed(instant now) {
  effects out;
  devices_.next_passed = true;
  end_if_devices_passed(out, now);
  return out;
}

ring_core::effects ring_core::previous_passed(instant now) {
  effects out;
  devices_.previous_passed = true;
  end_if_devices_passed(out, now);
  return out;
}

/// The neighbours' links are theirs until they have passed: what this one lost before that would be
/// a failure of theirs.
void ring_core::end_if_devices_passed(effects& out, instant now) {
  if (!ended_ && devices_.own && devices_.next_passed && devices_.previous_passed)
    report(out, now, {}, {});
}

} // namespace troupe::probe
