#include "runtime/link/admission_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::link {

namespace {

/// What an address may have waiting, as a part of the whole, before it is taken for a flood.
constexpr std::size_t fair_part = 8;
/// This part of the handshakes is kept for known addresses.
constexpr std::size_t reserved_part = 4;

const char* const too_many = "too many connections that have not said hello";

} // namespace

// ---- Waiting ----

/// Silent ones of unknown addresses, then of known ones, each time the oldest; else the newest of
/// the address that has more than its part, which is never less than one.
std::optional<admission_core::place> admission_core::least_worth_waiting(instant now) const {
  std::optional<place> silent, crowding;
  std::size_t most = std::max<std::size_t>(1, options_.waiting_max / fair_part);
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const auto& c = at->second;
    const bool stays_silent = c.now_in == phase::silent && now - c.since >= options_.silence;
    if (stays_silent && (!silent || (known((*silent)->second) && !known(c))))
      silent = at;
    const auto waiting = c.now_in == phase::ready && !known(c) ? loads_.at(c.address).waiting : 0;
    if (waiting > most || (crowding && waiting == most && waiting > 0)) {
      most = waiting;
      crowding = at;
    }
  }
  return silent ? silent : crowding;
}

bool admission_core::full(instant now) const {
  return waiting_ >= options_.waiting_max && !least_worth_waiting(now);
}

admission_core::effects admission_core::came(instant now, id which, const std::string& address) {
  effects out;
  if (waiting_ >= options_.waiting_max) {
    const auto victim = least_worth_waiting(now);
    invariant(victim.has_value(), "a connection was accepted although no other may be dropped");
    drop(out, *victim, {errc::overloaded, too_many});
  }
  connections_[which] = {address, now, phase::silent};
  ++loads_[address].waiting;
  ++waiting_;
  return out;
}

admission_core::effects admission_core::spoke(instant now, id which) {
  effects out;
  const auto at = connections_.find(which);
  if (at == connections_.end() || at->second.now_in != phase::silent)
    return out;
  at->second.now_in = phase::ready;
  begin_ready(out, now);
  return out;
}

// ---- Proving ----

std::optional<admission_core::place> admission_core::next_ready() const {
  const auto rank = [this](const connection& c) {
    return std::tuple(!known(c), loads_.at(c.address).proving);
  };
  std::optional<place> best;
  for (auto at = connections_.begin(); at != connections_.end(); ++at)
    if (at->second.now_in == phase::ready && (!best || rank(at->second) < rank((*best)->second)))
      best = at;
  return best;
}

bool admission_core::has_slot(const connection& c) const {
  if (proving() >= options_.proving_max || known(c))
    return proving() < options_.proving_max;
  const auto unknown = std::count_if(connections_.begin(), connections_.end(), [this](auto& each) {
    return each.second.now_in == phase::proving && !known(each.second);
  });
  return static_cast<std::size_t>(unknown) <
         options_.proving_max - options_.proving_max / reserved_part;
}

/// Of those that have had their time, one of the address with the most; a known address makes room
/// for known ones only.
std::optional<admission_core::place> admission_core::replaceable(instant now,
                                                                 const connection& by) const {
  const auto rank = [this](const connection& c) {
    return std::tuple(known(c), -static_cast<std::int64_t>(loads_.at(c.address).proving), c.since);
  };
  std::optional<place> worst;
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const auto& c = at->second;
    const bool may_go =
        c.now_in == phase::proving && now - c.since >= options_.grace && (!known(c) || known(by));
    if (may_go && (!worst || rank(c) < rank((*worst)->second)))
      worst = at;
  }
  return worst;
}

void admission_core::begin_ready(effects& out, instant now) {
  looked_at_ = now;
  while (const auto next = next_ready()) {
    if (!has_slot((*next)->second)) {
      const auto old = replaceable(now, (*next)->second);
      if (!old)
        return;
      drop(out, *old, {errc::overloaded, too_many});
    }
    auto& c = connections_.at((*next)->first);
    c.now_in = phase::proving;
    c.since = now;
    auto& l = loads_.at(c.address);
    --l.waiting;
    ++l.proving;
    --waiting_;
    out.begin.push_back((*next)->first);
  }
}

admission_core::effects admission_core::ended(instant now, id which, bool proven) {
  effects out;
  const auto at = connections_.find(which);
  if (at == connections_.end())
    return out;
  if (proven) {
    known_.insert(at->second.address);
    if (known_.size() > limits::nodes_max)
      known_.erase(*known_.begin() == at->second.address ? std::next(known_.begin())
                                                         : known_.begin());
  }
  remove(at);
  begin_ready(out, now);
  return out;
}

// ---- Ending ----

void admission_core::remove(place which) {
  const auto of_address = loads_.find(which->second.address);
  if (which->second.now_in == phase::proving) {
    --of_address->second.proving;
  } else {
    --of_address->second.waiting;
    --waiting_;
  }
  if (of_address->second.waiting + of_address->second.proving == 0)
    loads_.erase(of_address);
  connections_.erase(which);
}

void admission_core::drop(effects& out, place which, error why) {
  out.drop.push_back({which->first, std::move(why)});
  remove(which);
}

admission_core::effects admission_core::tick(instant now) {
  effects out;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto here = at++;
    const auto& c = here->second;
    if (c.now_in != phase::proving && now - c.since >= options_.patience)
      drop(out, here,
           {errc::unavailable, c.now_in == phase::silent
                                   ? "no Hello within " + in_words(options_.patience)
                                   : std::string("too many handshakes were under way")});
  }
  begin_ready(out, now);
  return out;
}

std::optional<instant> admission_core::next_wakeup() const {
  std::optional<instant> at;
  const auto sooner = [&at](instant t) { at = at ? std::min(*at, t) : t; };
  const bool some_are_ready =
      std::any_of(connections_.begin(), connections_.end(),
                  [](const auto& c) { return c.second.now_in == phase::ready; });
  for (const auto& [which, c] : connections_) {
    if (c.now_in != phase::proving)
      sooner(c.since + options_.patience);
    else if (some_are_ready && c.since + options_.grace > looked_at_)
      sooner(c.since + options_.grace);
  }
  return at;
}

} // namespace troupe::link
