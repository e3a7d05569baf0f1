#include "actors/node_supervisor/neighbours/neighbours_core.hpp"

#include "actors/limits.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// A peer may say any number; this keeps the arithmetic in range.
constexpr std::uint64_t longest_link_ms = std::chrono::milliseconds(24h * 365).count();

} // namespace

// ---- this node misses its master ----

neighbours_core::effects neighbours_core::reach(instant now, const msg<MasterReach>& m) {
  effects out;
  auto said = m.read();
  follows_ = said->getFollows();
  if (said->getReach() != MasterReach::Reach::LINKED)
    linked_since_.reset();
  else if (!linked_since_)
    linked_since_ = now;
  const bool missed = said->getReach() == MasterReach::Reach::MISSED;
  if (!missed || said->getOutage() != outage_)
    become_calm(out);
  outage_ = said->getOutage();
  if (missed && phase_ == phase::calm) {
    phase_.become(phase::asking);
    missed_at_ = answered_at_ = now;
    ask_at_ = now + limits::noticed_apart(lease_);
    for (const auto n : said->getNeighbours())
      if (neighbours_.size() < limits::neighbours_max && n.getPort() != 0)
        neighbours_.push_back({n.getNode().cStr(), n.getAddress().cStr(), n.getPort()});
  }
  check();
  return out;
}

void neighbours_core::become_calm(effects& out) {
  if (phase_ != phase::calm)
    phase_.become(phase::calm);
  for (const auto& n : std::exchange(neighbours_, {}))
    if (n.link != 0)
      out.push_back(close{n.link, "the question is answered"});
}

/// A link that is dialled or has been asked may be one into the void, and is given up after a
/// while.
void neighbours_core::ask(effects& out, instant now) {
  ask_at_ = now + limits::neighbours_asked_every;
  for (auto& n : neighbours_) {
    if (n.link != 0 && now < n.dialled_at + limits::neighbours_dialled_again)
      continue;
    if (n.link != 0)
      out.push_back(close{n.link, "it has not answered"});
    n.link = ++last_own_;
    n.dialled_at = now;
    out.push_back(dial{n.link, n.host, n.port});
  }
}

/// A handshake is a sign of life, whatever follows, and whichever dial it was.
neighbours_core::effects neighbours_core::connected(instant now, link_id link) {
  answered_at_ = now;
  if (!at(link))
    return {close{link, "it is not needed any more"}};
  return {
      say{link, author_.write<MasterSought>({}, [this](auto b) { b.setFollows(follows_); }).any()}};
}

neighbours_core::effects neighbours_core::not_connected(instant now, link_id link, bool answers) {
  if (answers)
    answered_at_ = now;
  if (auto* n = at(link))
    n->link = 0;
  return {};
}

void neighbours_core::answered(effects& out, instant now, neighbour& by,
                               const std::optional<msg<MasterKnown>>& with) {
  out.push_back(close{std::exchange(by.link, 0), "the question is answered"});
  if (phase_ != phase::asking)
    return;
  answered_at_ = now;
  const bool linked = with && with->read()->getLinked();
  const auto since =
      std::chrono::milliseconds(with ? std::min(with->read()->getSinceMs(), longest_link_ms) : 0);
  const bool was_there = linked && since >= now - missed_at_ + limits::noticed_apart(lease_);
  TROUPE_RARE_IF(!linked, "neighbours: one of them has no master either");
  TROUPE_RARE_IF(linked && !was_there, "neighbours: the master is back, but not here yet");
  if (was_there && by.had_it)
    tell_uplink(out, by.node);
  by.had_it = was_there;
}

void neighbours_core::tell_uplink(effects& out, const node_name& has_it) {
  phase_.become(phase::told);
  TROUPE_RARE_IF(!has_it.empty(), "neighbours: one of them has the master");
  out.push_back(tell{author_.write<NeighboursSaid>({}, [&](NeighboursSaid::Builder b) {
    b.setHasIt(has_it);
    b.setAsked(static_cast<std::uint32_t>(neighbours_.size()));
    b.setOutage(outage_);
  })});
}

// ---- links ----

neighbours_core::neighbour* neighbours_core::at(link_id link) {
  const auto found = std::find_if(neighbours_.begin(), neighbours_.end(),
                                  [link](const auto& n) { return link != 0 && n.link == link; });
  return found == neighbours_.end() ? nullptr : &*found;
}

neighbours_core::effects neighbours_core::arrived(instant now, link_id link) {
  if (asked_by_.size() >= limits::neighbours_asking_max)
    return {close{link, fmt::format("{} other nodes ask already", asked_by_.size())}};
  asked_by_.emplace(link, now + limits::neighbours_ask_within);
  answered_at_ = now;
  return {};
}

neighbours_core::effects neighbours_core::said(instant now, link_id link, const any_msg& m) {
  effects out;
  if (asked_by_.count(link) != 0) {
    if (m.is<MasterSought>())
      out.push_back(say{link, answer_to(now, m.as<MasterSought>()).any()});
  } else if (auto* n = at(link)) {
    if (m.is<MasterKnown>())
      answered(out, now, *n, m.as<MasterKnown>());
    else if (m.is<Refused>()) // by a build that does not know the question, or has too many
      answered(out, now, *n, std::nullopt);
  }
  check();
  return out;
}

/// A master that the other node has left for a newer one may be cut off itself.
msg<MasterKnown> neighbours_core::answer_to(instant now, const msg<MasterSought>& question) {
  const bool linked = linked_since_ && follows_ >= question.read()->getFollows();
  return author_.write<MasterKnown>({}, [&](MasterKnown::Builder b) {
    b.setLinked(linked);
    if (linked)
      b.setSinceMs(static_cast<std::uint64_t>(milliseconds_of(now - *linked_since_)));
  });
}

neighbours_core::effects neighbours_core::gone(instant, link_id link) {
  asked_by_.erase(link);
  if (auto* n = at(link))
    n->link = 0;
  return {};
}

// ---- time ----

neighbours_core::effects neighbours_core::tick(instant now) {
  effects out;
  for (auto a = asked_by_.begin(); a != asked_by_.end();) {
    if (now < a->second) {
      ++a;
      continue;
    }
    out.push_back(close{a->first, "its question is answered, or never came"});
    a = asked_by_.erase(a);
  }
  if (phase_ != phase::asking || neighbours_.empty())
    return out;
  // This process stood still, and answers may wait in its sockets.
  if (now >= silent_at() + limits::neighbours_asked_every)
    answered_at_ = now - limits::neighbours_silent_within(lease_) + limits::neighbours_asked_every;
  if (now >= silent_at())
    tell_uplink(out, {});
  else if (now >= ask_at_)
    ask(out, now);
  check();
  return out;
}

instant neighbours_core::silent_at() const {
  return answered_at_ + limits::neighbours_silent_within(lease_);
}

std::optional<instant> neighbours_core::next_wakeup() const {
  std::optional<instant> first;
  const auto consider = [&first](instant when) { first = std::min(first.value_or(when), when); };
  for (const auto& [link, until] : asked_by_)
    consider(until);
  if (phase_ == phase::asking && !neighbours_.empty()) {
    consider(ask_at_);
    consider(silent_at());
  }
  return first;
}

std::string neighbours_core::in_words() const {
  if (phase_ == phase::calm)
    return linked_since_ ? "the master is there" : "idle";
  return fmt::format("{} {} of {} other nodes whether the master is there",
                     phase_ == phase::asking ? "asks" : "has asked",
                     std::count_if(neighbours_.begin(), neighbours_.end(),
                                   [](const auto& n) { return n.link != 0; }),
                     neighbours_.size());
}

/// After each event.
void neighbours_core::check() const {
  invariant(phase_ != phase::calm || neighbours_.empty(), "a calm node has nothing to ask");
  invariant(neighbours_.size() <= limits::neighbours_max, "more are asked than was said");
  invariant(!linked_since_ || phase_ == phase::calm, "a node that has its master asks for it");
}

} // namespace troupe::actors
