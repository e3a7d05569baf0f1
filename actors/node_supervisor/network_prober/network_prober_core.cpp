#include "actors/node_supervisor/network_prober/network_prober_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;
using probe::ring_core;

network_prober_core::network_prober_core(node_name node, messages::author author,
                                         ring_core::pay pay, std::string master_host)
    : node_(std::move(node)), author_(std::move(author)), pay_(std::move(pay)),
      master_host_(std::move(master_host)) {}

/// The host carries out one probe at a time, and a group of an older check is waited for no longer.
network_prober_core::effects network_prober_core::node_probe_wanted(instant now,
                                                                    const msg<NodeProbeWanted>& m) {
  effects out;
  if (group_)
    perform(out, group_->ring.abandon(now, "the node is probed by itself"));
  probing_node_ = true;
  out.push_back(probe_node{m});
  return out;
}

network_prober_core::effects network_prober_core::node_probed(instant, const msg<NodeProbed>& m) {
  probing_node_ = false;
  return {report{m.any()}};
}

network_prober_core::effects network_prober_core::key_made(instant now, std::uint64_t number,
                                                           const std::string& key) {
  effects out;
  if (group_ && group_->devices == number)
    perform(out, group_->ring.key_made(now, key));
  return out;
}

network_prober_core::effects network_prober_core::devices_probed(instant now, std::uint64_t number,
                                                                 const msg<GroupProbed>& m) {
  effects out;
  if (group_ && group_->devices == number)
    perform(out, group_->ring.devices_probed(now, m));
  return out;
}

network_prober_core::effects
network_prober_core::group_probe_wanted(instant now, const msg<GroupProbeWanted>& m) {
  effects out;
  auto wanted = m.read();
  if (const auto why = ring_core::validation_error(*wanted); !why.empty()) {
    out.push_back(report{author_
                             .write<GroupProbed>({},
                                                 [&](auto b) {
                                                   b.setNode(node_);
                                                   b.setCheck(wanted->getCheck());
                                                   b.setRound(wanted->getRound());
                                                   b.setGroup(wanted->getGroup());
                                                   b.setFailed("the master asks for " + why);
                                                 })
                             .any()});
    return out;
  }
  if (group_ && group_->check == wanted->getCheck() && group_->round == wanted->getRound())
    return out;
  if (group_)
    perform(out, group_->ring.abandon(now, "another group is probed"));
  const auto next = ring_core::neighbour(*wanted, 1);
  group_.emplace(group{ring_core(author_, m, now, pay_),
                       wanted->getCheck(),
                       wanted->getRound(),
                       next.getAddress().size() > 0 ? next.getAddress().cStr() : master_host_,
                       next.getPort(),
                       0,
                       0,
                       {},
                       0});
  perform(out, group_->ring.begin());
  adopt_waiting(out, now);
  return out;
}

/// What the ring wants, on the links that it has.
void network_prober_core::perform(effects& out, const ring_core::effects& wanted) {
  for (const auto& e : wanted)
    if (const auto* d = std::get_if<ring_core::dial>(&e)) {
      group_->begin = d->begin;
      group_->next = ++last_own_;
      out.push_back(dial{group_->next, group_->host, group_->port});
    } else if (const auto* m = std::get_if<ring_core::to_next>(&e)) {
      out.push_back(say{group_->next, m->message});
    } else if (const auto* back = std::get_if<ring_core::to_previous>(&e)) {
      out.push_back(say{group_->previous, back->message});
    } else if (const auto* devices = std::get_if<ring_core::probe_devices>(&e)) {
      group_->devices = ++last_devices_;
      out.push_back(probe_devices{group_->devices, devices->wanted});
    } else if (std::holds_alternative<ring_core::end_devices>(e)) {
      out.push_back(end_probe{});
    } else {
      const auto& ended = std::get<ring_core::done>(e).report;
      out.push_back(report{ended.any()});
      const std::string why = ended.read()->getFailed().cStr();
      let_go(out, why.empty() ? "the probe is over" : why);
      return;
    }
}

void network_prober_core::let_go(effects& out, const std::string& why) {
  for (const auto link : {group_->next, group_->previous})
    if (link != 0)
      out.push_back(close{link, why});
  group_.reset();
}

// ---- links ----

network_prober_core::effects network_prober_core::arrived(instant now, link_id link,
                                                          const node_name& from) {
  if (waiting_.size() >= limits::ring_links_waiting_max)
    return {close{link, fmt::format("{} links wait already", waiting_.size())}};
  waiting_.emplace(link, waiting_link{from, now + limits::ring_link_waits, {}});
  return {};
}

network_prober_core::effects network_prober_core::connected(instant now, link_id link) {
  effects out;
  if (!group_ || group_->next != link) {
    out.push_back(close{link, "it is not needed any more"});
    return out;
  }
  out.push_back(say{link, group_->begin->any()});
  perform(out, group_->ring.connected(now));
  return out;
}

network_prober_core::effects
network_prober_core::not_connected(instant now, link_id link, const std::string& why, bool final) {
  effects out;
  if (!group_ || group_->next != link)
    return out;
  group_->next = 0;
  perform(out, group_->ring.not_connected(now, why, final));
  return out;
}

network_prober_core::effects network_prober_core::said(instant now, link_id link,
                                                       const any_msg& m) {
  effects out;
  const auto at = waiting_.find(link);
  if (at == waiting_.end()) {
    hear(out, now, link, m);
    return out;
  }
  auto& waits = at->second;
  waits.said.push_back(m);
  if (!waits.said.front().is<ProbeBegin>() ||
      waits.said.size() > limits::ring_messages_waiting_max) {
    waiting_.erase(at);
    out.push_back(close{link, "it belongs to no probe that is under way here"});
    return out;
  }
  adopt_waiting(out, now);
  return out;
}

/// The link of the member before this one is in the ring from now on, with what it has said.
void network_prober_core::adopt_waiting(effects& out, instant now) {
  if (!group_ || group_->previous != 0)
    return;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [this](const auto& w) {
    const auto& said = w.second.said;
    return !said.empty() && w.second.from == group_->ring.previous() &&
           group_->ring.is_previous(*said.front().template as<ProbeBegin>().read());
  });
  if (found == waiting_.end())
    return;
  const auto link = found->first;
  const auto said = std::move(found->second.said);
  waiting_.erase(found);
  group_->previous = link;
  perform(out, group_->ring.previous_connected(now));
  for (std::size_t i = 1; i < said.size(); ++i)
    hear(out, now, link, said[i]);
}

void network_prober_core::hear(effects& out, instant now, link_id link, const any_msg& m) {
  if (!group_ || link == 0)
    return;
  if (link == group_->previous && m.is<ProbePart>())
    perform(out, group_->ring.part(now, m.as<ProbePart>()));
  else if (link == group_->previous && m.is<ProbeKey>())
    perform(out, group_->ring.key(now, m.as<ProbeKey>()));
  else if (link == group_->previous && m.is<ProbePassed>())
    perform(out, group_->ring.previous_passed(now));
  else if (link == group_->next && m.is<ProbePassed>())
    perform(out, group_->ring.next_passed(now));
  else if (link == group_->next && m.is<ProbeTaken>())
    perform(out, group_->ring.taken(now, m.as<ProbeTaken>()));
  else if (link == group_->next && m.is<Refused>())
    perform(out, group_->ring.next_lost(now, m.as<Refused>().read()->getReason().cStr()));
}

network_prober_core::effects network_prober_core::gone(instant now, link_id link,
                                                       const std::string& why) {
  effects out;
  if (waiting_.erase(link) > 0 || !group_)
    return out;
  if (link == group_->next) {
    group_->next = 0;
    perform(out, group_->ring.next_lost(now, why));
  } else if (link == group_->previous) {
    group_->previous = 0;
    perform(out, group_->ring.previous_lost(now, why));
  }
  return out;
}

// ---- time ----

network_prober_core::effects network_prober_core::tick(instant now) {
  effects out;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (now < at->second.until) {
      ++at;
      continue;
    }
    out.push_back(close{at->first, "no probe was asked for to which it belongs"});
    at = waiting_.erase(at);
  }
  if (group_)
    perform(out, group_->ring.tick(now));
  return out;
}

std::optional<instant> network_prober_core::next_wakeup() const {
  std::optional<instant> first;
  const auto consider = [&first](std::optional<instant> at) {
    if (at && (!first || *at < *first))
      first = at;
  };
  for (const auto& [link, w] : waiting_)
    consider(w.until);
  if (group_)
    consider(group_->ring.next_wakeup());
  return first;
}

std::string network_prober_core::in_words() const {
  if (group_)
    return fmt::format("probes its group of round {}", group_->round);
  return probing_node_ ? "probes this node" : "idle";
}

} // namespace troupe::actors
