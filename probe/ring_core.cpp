#include "probe/ring_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::probe {

using namespace messages;

namespace {

/// Where the receiver is told of its neighbours only, it is in the middle.
constexpr std::uint32_t told_of_many = 3;

std::uint32_t count_of(GroupProbeWanted::Reader wanted) {
  return wanted.getCount() > 0 ? wanted.getCount() : wanted.getMembers().size();
}

node_name name_of(GroupProbeWanted::Reader wanted, int steps) {
  return ring_core::neighbour(wanted, steps).getNode().cStr();
}

std::vector<std::uint64_t> sizes_of(GroupProbeWanted::Reader wanted) {
  std::vector<std::uint64_t> sizes;
  for (const auto bytes : wanted.getSizes())
    sizes.push_back(bytes);
  return sizes;
}

std::uint64_t microseconds(duration d) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(d).count()));
}

} // namespace

std::string ring_core::validation_error(GroupProbeWanted::Reader wanted) {
  const auto members = count_of(wanted);
  if (members < 2 || members > limits::ring_members_max)
    return fmt::format("a ring of {} members", members);
  if (wanted.getCount() > 0 && wanted.getMembers().size() != told_of_many)
    return fmt::format("a ring of {} members of which {} are told", members,
                       wanted.getMembers().size());
  if (wanted.getPlace() >= members)
    return fmt::format("place {} of {} members", wanted.getPlace(), members);
  if (wanted.getSizes().size() == 0 || wanted.getSizes().size() > limits::ring_sizes_max)
    return fmt::format("{} sizes of messages", wanted.getSizes().size());
  for (const auto bytes : wanted.getSizes())
    if (bytes == 0 || bytes > limits::ring_bytes_max || bytes % sizeof(float) != 0)
      return fmt::format("messages of {} bytes", bytes);
  if (wanted.getRepeats() == 0 || wanted.getRepeats() > limits::ring_repeats_max)
    return fmt::format("{} repeats", wanted.getRepeats());
  if (wanted.getDevices() == 0)
    return {};
  const std::uint64_t first = wanted.getFirstRank(), behind = first + wanted.getDevices();
  if (wanted.getDevices() > limits::probed_devices_max || wanted.getRanks() < members ||
      wanted.getRanks() > limits::probed_ranks_max || behind > wanted.getRanks() ||
      (wanted.getPlace() == 0) != (first == 0))
    return fmt::format("{} devices from rank {} of {}", wanted.getDevices(), first,
                       wanted.getRanks());
  return {};
}

GroupMember::Reader ring_core::neighbour(GroupProbeWanted::Reader wanted, int steps) {
  const auto told = wanted.getMembers();
  const auto receiver = wanted.getCount() > 0 ? 1 : wanted.getPlace();
  return told[(receiver + told.size() + static_cast<unsigned>(steps)) % told.size()];
}

ring_core::ring_core(messages::author author, const msg<GroupProbeWanted>& wanted, instant now,
                     pay may_send)
    : author_(std::move(author)), wanted_(wanted), pay_(std::move(may_send)), began_(now),
      until_(now + std::chrono::milliseconds(wanted.read()->getWithinMs())),
      connect_until_(std::min(until_, now + limits::ring_connect_within)),
      n_(count_of(*wanted.read())), place_(wanted.read()->getPlace()),
      repeats_(wanted.read()->getRepeats()), by_devices_(wanted.read()->getDevices() > 0),
      paced_(wanted.read()->getPaced()), previous_(name_of(*wanted.read(), -1)),
      own_(name_of(*wanted.read(), 0)), next_(name_of(*wanted.read(), 1)),
      sizes_(sizes_of(*wanted.read())),
      program_(n_, place_, limits::ring_laps, by_devices_ ? 0 : sizes_.size(), repeats_),
      blocks_{ring_blocks{n_, place_}, ring_blocks{n_, place_}}, times_(sizes_.size()) {}

bool ring_core::is_previous(ProbeBegin::Reader begin) const {
  auto w = wanted_.read();
  return begin.getCheck() == w->getCheck() && begin.getRound() == w->getRound() &&
         begin.getGroup() == w->getGroup() && begin.getPlace() == (place_ + n_ - 1) % n_;
}

// ---- links ----

ring_core::effects ring_core::begin() {
  redial_at_.reset();
  return {dial{author_.write<ProbeBegin>({}, [this](auto b) {
    auto w = wanted_.read();
    b.setCheck(w->getCheck());
    b.setRound(w->getRound());
    b.setGroup(w->getGroup());
    b.setPlace(place_);
  })}};
}

ring_core::effects ring_core::connected(instant now) {
  effects out;
  if (ended_ || std::exchange(connected_, true))
    return out;
  enter(now);
  pump(out, now);
  return out;
}

ring_core::effects ring_core::not_connected(instant now, const std::string& why, bool final) {
  effects out;
  if (ended_)
    return out;
  refused_ = why;
  if (final)
    fail(out, now, fmt::format("{} can not be reached: {}", next(), why), next());
  else
    redial_at_ = now + limits::ring_redial;
  return out;
}

ring_core::effects ring_core::previous_connected(instant) {
  previous_connected_ = true;
  return {};
}

/// What the next member has taken is all that it needs. In a ring of three and more it may end
/// while this one still waits for the last block, which comes from elsewhere.
ring_core::effects ring_core::next_lost(instant now, const std::string& why) {
  effects out;
  if (!ended_ && !(by_devices_ ? devices_.next_passed : all_given()))
    fail(out, now, fmt::format("the link to {} was lost: {}", next(), why), next());
  return out;
}

ring_core::effects ring_core::previous_lost(instant now, const std::string& why) {
  effects out;
  if (!ended_ && !(by_devices_ ? devices_.previous_passed : all_received()))
    fail(out, now, fmt::format("the link from {} was lost: {}", previous(), why), previous());
  return out;
}

// ---- exchanges ----

/// An exchange begins when the one before it has been received: what it gives came with that. Only
/// the first member begins a lap, and the others pass it on.
void ring_core::enter(instant now) {
  if (all_received())
    return;
  const auto e = program_.at(at_);
  if (e.what == exchange::kind::lap) {
    if (place_ == 0)
      give(at_, e);
    return;
  }
  if (e.first) {
    auto& times = times_[e.size];
    if (!times.began)
      times.began = now;
    if (e.gathers)
      blocks(e.collective).begin_gather(sizes_[e.size]);
    else
      blocks(e.collective).begin_reduce(sizes_[e.size]);
  }
  give(at_, e);
}

void ring_core::give(std::uint64_t number, const exchange& e) {
  const auto block =
      e.what == exchange::kind::lap ? byte_range{} : blocks(e.collective).block(e.gives);
  gives_.push_back({number, e.collective, block.begin, block.end, block.size() == 0});
}

ring_core::effects ring_core::part(instant now, const msg<ProbePart>& m) {
  effects out;
  if (ended_)
    return out;
  auto p = m.read();
  const auto content = p->getContent().asBytes();
  if (all_received() || p->getStep() != static_cast<std::uint32_t>(at_)) {
    fail(out, now, fmt::format("{} is at exchange {} and not {}", previous(), p->getStep(), at_),
         previous());
    return out;
  }
  const auto e = program_.at(at_);
  if (!take(out, e, p->getOffset(), content)) {
    fail(out, now, fmt::format("{} sent other bytes than are due in exchange {}", previous(), at_),
         previous());
    return out;
  }
  const auto due =
      e.what == exchange::kind::lap ? byte_range{} : blocks(e.collective).block(e.takes);
  if (received_ == due.size())
    complete(out, now, e);
  if (!ended_) {
    pump(out, now);
    end_if_done(out, now);
  }
  return out;
}

bool ring_core::take(effects& out, const exchange& e, std::uint64_t offset,
                     kj::ArrayPtr<const kj::byte> content) {
  if (e.what == exchange::kind::lap)
    return content.size() == 0;
  auto& values = blocks(e.collective);
  const auto due = values.block(e.takes);
  if (offset != received_ || content.size() > due.size() - received_ ||
      content.size() % sizeof(float) != 0 || (content.size() == 0) != (due.size() == 0))
    return false;
  if (e.what == exchange::kind::add)
    values.add(due.begin + received_, content.begin(), content.size());
  else
    values.take(due.begin + received_, content.begin(), content.size());
  received_ += content.size();
  taken_ += content.size();
  if (content.size() > 0)
    out.push_back(to_previous{
        author_.write<ProbeTaken>({}, [&](auto b) { b.setBytes(content.size()); }).any()});
  return true;
}

void ring_core::complete(effects& out, instant now, const exchange& e) {
  if (e.what == exchange::kind::lap) {
    laps_.push_back(now);
    if (place_ != 0)
      give(at_, e);
  }
  if (e.last_of_kind) {
    auto& ended = e.gathers ? times_[e.size].gathered : times_[e.size].reduced;
    ended = now;
    auto& values = blocks(e.collective);
    if (!(e.gathers ? values.is_gathered() : values.is_reduced()))
      return fail(out, now,
                  fmt::format("what came out of an {} of {} bytes is wrong: a memory or a network "
                              "damages data",
                              e.gathers ? "all-gather" : "all-reduce", sizes_[e.size]),
                  {});
  }
  ++at_;
  received_ = 0;
  if (by_devices_ && all_received() && place_ == 0)
    return begin_devices(out, now, {});
  enter(now);
}

ring_core::effects ring_core::taken(instant now, const msg<ProbeTaken>& m) {
  effects out;
  const auto bytes = m.read()->getBytes();
  if (ended_)
    return out;
  if (bytes > on_the_way_) {
    fail(out, now, fmt::format("{} has taken more than was sent", next()), next());
    return out;
  }
  on_the_way_ -= bytes;
  pump(out, now);
  end_if_done(out, now);
  return out;
}

/// Sends what the window, and the rate, allow.
void ring_core::pump(effects& out, instant now) {
  paid_at_.reset();
  while (connected_ && !gives_.empty()) {
    auto& g = gives_.front();
    const auto bytes = std::min(g.end - g.at, limits::ring_part);
    if (on_the_way_ + bytes > limits::ring_window)
      return;
    if (const auto at = paced_ ? pay_(now, bytes) : now; at > now) {
      paid_at_ = at;
      return;
    }
    const auto begin = g.empty ? 0 : blocks(g.collective).block(program_.at(g.number).gives).begin;
    out.push_back(to_next{author_
                              .write<ProbePart>({},
                                                [&](auto b) {
                                                  b.setStep(static_cast<std::uint32_t>(g.number));
                                                  b.setOffset(g.at - begin);
                                                  if (bytes > 0)
                                                    b.setContent(kj::arrayPtr(
                                                        blocks(g.collective).at(g.at), bytes));
                                                })
                              .any()});
    on_the_way_ += bytes;
    g.at += bytes;
    if (g.at == g.end)
      gives_.pop_front();
  }
  if (connected_)
    give_key(out);
}

// ---- the end ----

/// A member that went before its neighbour has all of its bytes would break that one's probe.
void ring_core::end_if_done(effects& out, instant now) {
  if (!ended_ && !by_devices_ && all_received() && all_given())
    report(out, now, {}, {});
}

void ring_core::fail(effects& out, instant now, const std::string& why, const node_name& peer) {
  report(out, now, why, peer);
}

void ring_core::report(effects& out, instant now, const std::string& failed,
                       const node_name& peer) {
  ended_ = true;
  gives_.clear();
  if (devices_.begun && !devices_.own)
    out.push_back(end_devices{});
  out.push_back(done{author_.write<GroupProbed>({}, [&](GroupProbed::Builder b) {
    auto w = wanted_.read();
    b.setNode(own_);
    b.setCheck(w->getCheck());
    b.setRound(w->getRound());
    b.setGroup(w->getGroup());
    b.setFailed(failed);
    b.setPeer(peer);
    // The first lap ends when all are connected; before that a member waits for the others' start.
    if (laps_.size() > 2) {
      std::vector<duration> each;
      for (std::size_t i = 2; i < laps_.size(); ++i)
        each.push_back(laps_[i] - laps_[i - 1]);
      std::nth_element(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2),
                       each.end());
      b.setLatencyUs(microseconds(each[each.size() / 2] / n_));
    }
    if (!failed.empty())
      return;
    if (by_devices_) {
      auto own = devices_.own->read();
      b.setSeconds(own->getSeconds());
      b.setSizes(own->getSizes());
      return;
    }
    b.setSeconds(std::chrono::duration<double>(now - laps_[1]).count());
    auto sizes = b.initSizes(static_cast<unsigned>(sizes_.size()));
    for (unsigned i = 0; i < sizes_.size(); ++i) {
      const auto& t = times_[i];
      sizes[i].setBytes(sizes_[i]);
      sizes[i].setAllReduceUs(microseconds((*t.reduced - *t.began) / repeats_));
      sizes[i].setAllGatherUs(microseconds((*t.gathered - *t.reduced) / repeats_));
    }
  })});
}

ring_core::effects ring_core::abandon(instant now, const std::string& why) {
  effects out;
  if (!ended_)
    fail(out, now, fmt::format("{}; {}", late(now), why), late_member());
  return out;
}

ring_core::effects ring_core::tick(instant now) {
  effects out;
  if (ended_)
    return out;
  if (now >= due()) {
    fail(out, now, late(now), late_member());
    return out;
  }
  if (redial_at_ && now >= *redial_at_)
    return begin();
  if (paid_at_ && now >= *paid_at_)
    pump(out, now);
  return out;
}

std::optional<instant> ring_core::next_wakeup() const {
  if (ended_)
    return std::nullopt;
  auto at = due();
  if (redial_at_)
    at = std::min(at, *redial_at_);
  if (paid_at_)
    at = std::min(at, *paid_at_);
  return at;
}

} // namespace troupe::probe
