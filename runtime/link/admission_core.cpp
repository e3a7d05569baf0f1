#include "runtime/link/admission_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::link {

namespace {

/// What an address may have waiting, as a part of the whole, before it is taken for a flood.
constexpr std::size_t fair_part = 8;
/// This part of the handshakes is kept for known addresses. A node supervisor that crashed has half
/// a second to be back; strangers must not be able to fill that time with handshakes of their own.
constexpr std::size_t reserved_part = 4;

const char* const too_many = "too many connections that have not said hello";

} // namespace

// ---- Waiting ----

/// Silent ones of unknown addresses, then of known ones, each time the oldest; else the newest of
/// the address that has more than its part, which is never less than one. A silent connection is
/// the cheapest to open and the likeliest to be a stranger's, so it goes first. Whether an address
/// crowds is asked only of connections that have spoken: a whole job behind one address may be
/// silent for a moment.
std::optional<admission_core::place> admission_core::least_worth_waiting(instant now) const {
  std::optional<place> silent, crowding;
  std::size_t most = std::max<std::size_t>(1, options_.waiting_max / fair_part);
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const auto& c = at->second;
    const bool stays_silent = c.now_in == phase::silent && now - c.since >= options_.silence;
    // The map is in the order of arrival, so the first one that is found is the oldest.
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

/// A newcomer that finds no victim waits in the kernel's queue, where it costs nothing here.
bool admission_core::full(instant now) const {
  return waiting_ >= options_.waiting_max && !least_worth_waiting(now);
}

/// Waiting costs a descriptor and no processor time: the handshake, which is what an attacker would
/// have us pay for, begins only behind spoke().
admission_core::effects admission_core::came(instant now, id which, const std::string& address) {
  effects out;
  if (waiting_ >= options_.waiting_max) {
    const auto victim = least_worth_waiting(now);
    invariant(victim.has_value(), "a connection was accepted although no other may be dropped");
    // The newcomer is silent as well, but younger: its first bytes may be on their way.
    drop(out, *victim, {errc::overloaded, too_many});
  }
  connections_[which] = {address, now};
  ++loads_[address].waiting;
  ++waiting_;
  return out;
}

/// Also a peer that hung up is ready: its handshake ends at once, and frees the place in the
/// ordinary way.
admission_core::effects admission_core::spoke(instant now, id which) {
  effects out;
  const auto at = connections_.find(which);
  if (at == connections_.end() || at->second.now_in != phase::silent)
    return out;
  at->second.now_in.become(phase::ready);
  begin_ready(out, now);
  return out;
}

// ---- Proving ----

/// Known addresses first, then those that have the fewest handshakes under way: one address that
/// dials all the time gets one turn for each turn of the others. Among equals the oldest.
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

/// A known address may use every slot, an unknown one all but the reserved part. So a returning
/// node finds a slot even while strangers hold all that they may.
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
/// for known ones only. Before its grace is over no handshake is ended for another: a whole job
/// that dials at once is no attack, and each of its nodes needs a TLS handshake.
std::optional<admission_core::place> admission_core::replaceable(instant now,
                                                                 const connection& by) const {
  const auto rank = [this](const connection& c) {
    // Strangers before members, crowds before single dialers, and the oldest of those.
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

/// Called after whatever may have freed a slot or made a connection ready, so nothing that could
/// begin waits for a timer.
void admission_core::begin_ready(effects& out, instant now) {
  looked_at_ = now;
  while (const auto next = next_ready()) {
    if (!has_slot((*next)->second)) {
      // The best candidate decides: if no slot can be had for it, there is none for the others.
      const auto old = replaceable(now, (*next)->second);
      // Left as they are, the others wait: next_wakeup() names the moment at which the first grace
      // is over.
      if (!old)
        return;
      drop(out, *old, {errc::overloaded, too_many});
    }
    auto& c = connections_.at((*next)->first);
    c.now_in.become(phase::proving);
    // The grace is that of the handshake, and begins with it.
    c.since = now;
    auto& l = loads_.at(c.address);
    --l.waiting;
    ++l.proving;
    --waiting_;
    out.begin.push_back((*next)->first);
  }
}

/// What has proven itself once makes its address known, so that the node's next dial, after a crash
/// or a cut of the network, goes first.
admission_core::effects admission_core::ended(instant now, id which, bool proven) {
  effects out;
  const auto at = connections_.find(which);
  if (at == connections_.end())
    return out;
  // Only a proof makes known, never a number of attempts: no stranger can earn a reserved slot.
  if (proven) {
    known_.insert(at->second.address);
    // A bound, not a policy: a job has no more nodes than that. The newest one stays in any case.
    if (known_.size() > limits::nodes_max)
      known_.erase(*known_.begin() == at->second.address ? std::next(known_.begin())
                                                         : known_.begin());
  }
  // The slot is free before the next candidate is looked for.
  remove(at);
  begin_ready(out, now);
  return out;
}

// ---- Ending ----

/// An address without connections leaves no trace, or a scan from many addresses would fill the
/// memory.
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
      // Two reasons, as the log line is what tells a user a stranger from a master that is too
      // busy.
      drop(out, here,
           {errc::unavailable, c.now_in == phase::silent
                                   ? "no Hello within " + in_words(options_.patience)
                                   : std::string("too many handshakes were under way")});
  }
  begin_ready(out, now);
  return out;
}

/// A grace that was over when the core last looked changed nothing then, and is not asked for
/// again: the shell would wake at once, for ever.
std::optional<instant> admission_core::next_wakeup() const {
  std::optional<instant> at;
  const auto sooner = [&at](instant t) { at = at ? std::min(*at, t) : t; };
  // With nothing that waits for a slot no grace is of interest.
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
