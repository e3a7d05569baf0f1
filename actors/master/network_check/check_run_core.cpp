#include "actors/master/network_check/check_run_core.hpp"

#include "actors/master/network_check/network_check_core_evidence.hpp"
#include "probe/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;
using network_check::group_result;
using network_check::probe_result;

namespace {

/// What a node says of itself goes into sentences.
std::string shortened(std::string words) {
  if (words.size() > limits::check_words_max) {
    words.resize(limits::check_words_max);
    // No half of a character.
    while (!words.empty() && (words.back() & 0xC0) == 0x80)
      words.pop_back();
    if (!words.empty())
      words.pop_back();
  }
  return words;
}

bool is_undecidable(const network_check::verdict& v) {
  return std::any_of(v.findings.begin(), v.findings.end(), [](const auto& f) {
    return f.what == network_check::finding::kind::undecidable;
  });
}

} // namespace

check_run_core::check_run_core(messages::author author, network_check_options options,
                               std::uint64_t first_number)
    : author_(std::move(author)), options_(std::move(options)), number_(first_number) {}

// ---- what is heard ----

check_run_core::effects check_run_core::wanted(instant now, const msg<CheckWanted>& m) {
  effects out;
  ++number_;
  auto asked = m.read();
  now_ = check{};
  now_->policy = options_.policy;
  now_->began = now;
  now_->alone = asked->getAlone();
  for (const auto n : asked->getNodes()) {
    now_->by_name.emplace(n.getNode().cStr(), static_cast<index>(now_->nodes.size()));
    now_->results.nodes.emplace_back(n.getNode().cStr());
    now_->nodes.push_back({n.getAddress().cStr(), n.getBulkPort(), n.getTrained()});
  }
  now_->count = now_->nodes.size();
  now_->results.alone.resize(now_->count);
  out.push_back(note{begun_in_words()});
  std::vector<index> all(now_->nodes.size());
  for (index n = 0; n < all.size(); ++n)
    all[n] = n;
  ask_alone(out, now, all, step::alone);
  now_->alone_until = now_->until;
  return out;
}

check_run_core::effects check_run_core::group_probed(instant now, const msg<GroupProbed>& m) {
  effects out;
  auto r = m.read();
  const auto n = find(r->getNode().cStr());
  if (!n || r->getCheck() != number_)
    return out;
  if (r->getRound() < now_->round || now_->at == step::late)
    heard_late(*r, *n);
  if (r->getRound() != now_->round || now_->open.count({r->getGroup(), *n}) == 0)
    return out;
  const bool passed = r->getFailed().size() == 0;
  if (!passed)
    out.push_back(note{group_failed_in_words(*r)});
  if (now_->at == step::perf_test) {
    now_->measured.push_back(m);
  } else {
    auto& g = now_->groups[r->getGroup()];
    const auto at = std::find(g.members.begin(), g.members.end(), *n) - g.members.begin();
    g.results[static_cast<std::size_t>(at)] = {passed ? probe_result::kind::passed
                                                      : probe_result::kind::failed,
                                               r->getSeconds(), shortened(r->getFailed().cStr())};
    auto& of = now_->nodes[*n];
    if (passed && (of.best == 0 || r->getSeconds() < of.best)) {
      of.best = r->getSeconds();
      of.latency_us = r->getLatencyUs();
    }
  }
  answered(out, now, r->getGroup(), *n);
  return out;
}

/// It stays silent in that round, which is over; but what had got through by then tells a cable
/// that is slow from one that is cut.
void check_run_core::heard_late(GroupProbed::Reader r, index n) {
  const auto& rounds = now_->results.rounds;
  if (r.getRound() == 0 || r.getRound() > rounds.size())
    return;
  auto& groups = now_->results.rounds[r.getRound() - 1];
  if (r.getGroup() >= groups.size())
    return;
  auto& g = groups[r.getGroup()];
  const auto at = static_cast<std::size_t>(std::find(g.members.begin(), g.members.end(), n) -
                                           g.members.begin());
  if (at < g.results.size() && g.results[at].what == probe_result::kind::silent)
    g.results[at].why = shortened(r.getFailed().cStr());
}

/// It is in no further group. Its partners' probes fail by themselves.
check_run_core::effects check_run_core::node_lost(instant now, const msg<NodeLost>& m) {
  effects out;
  const auto n = find(m.read()->getNode().cStr());
  if (!n)
    return out;
  now_->nodes[*n].lost = true;
  now_->results.alone[*n] =
      probe_result{probe_result::kind::failed, 0,
                   fmt::format("it was lost during the check: {}", m.read()->getReason().cStr())};
  std::vector<std::size_t> groups;
  for (const auto& [which, unused] : now_->open)
    if (which.second == *n)
      groups.push_back(which.first);
  for (const auto g : groups)
    answered(out, now, g, *n);
  if (now_ && now_->late.count(*n) != 0)
    no_longer_late(out, now, *n);
  return out;
}

check_run_core::effects check_run_core::tick(instant now) {
  effects out;
  if (now_ && now >= now_->until)
    end_step(out, now);
  return out;
}

std::optional<instant> check_run_core::next_wakeup() const {
  return now_ ? std::optional(now_->until) : std::nullopt;
}

std::optional<check_run_core::index> check_run_core::find(const std::string& name) const {
  if (!now_)
    return std::nullopt;
  const auto at = now_->by_name.find(name);
  return at == now_->by_name.end() ? std::nullopt : std::optional(at->second);
}

// ---- steps ----

void check_run_core::begin_step(instant now, step which, duration within) {
  now_->at = which;
  now_->step_began = now;
  now_->until = now + within + limits::check_on_the_way;
  now_->open.clear();
  now_->begin_devices.clear();
  now_->devices_open = 0;
  now_->asked = 0;
}

/// Libraries of two versions may not understand each other; that one node has another one is no
/// fault of its network.
check_run_core::means check_run_core::means_of(const std::vector<index>& members) const {
  means by{now_->nodes[members.front()].library, 0};
  for (const auto n : members) {
    const auto& member = now_->nodes[n];
    if (member.library.empty() || member.library != by.library || member.ranks == 0)
      return {};
    by.ranks += member.ranks;
  }
  return by;
}

void check_run_core::ask_groups(effects& out, instant now, const network_check::groups& wanted) {
  begin_step(now, step::groups, options_.within);
  ++now_->round;
  now_->groups.clear();
  for (const auto& members : wanted) {
    const bool by_devices = means_of(members).ranks > 0;
    ask_ring(out, now_->groups.size(), members,
             {by_devices ? options_.device_bytes : options_.bytes},
             by_devices ? options_.device_repeats : options_.repeats, options_.within);
    now_->groups.push_back(group_result{members, std::vector<probe_result>(members.size())});
  }
}

/// Of a large group only the neighbours: what is sent to all would grow with its square.
void check_run_core::write_members(GroupProbeWanted::Builder to, const std::vector<index>& members,
                                   std::uint32_t place) const {
  auto told = members;
  if (const auto n = members.size(); n > 3) {
    told = {members[(place + n - 1) % n], members[place], members[(place + 1) % n]};
    to.setCount(static_cast<std::uint32_t>(n));
  }
  auto all = to.initMembers(static_cast<unsigned>(told.size()));
  for (unsigned i = 0; i < told.size(); ++i) {
    all[i].setNode(name_on_links(told[i]));
    all[i].setAddress(now_->nodes[told[i]].address);
    all[i].setPort(now_->nodes[told[i]].port);
  }
}

void check_run_core::ask_ring(effects& out, std::size_t group, const std::vector<index>& members,
                              const std::vector<std::uint64_t>& sizes, std::uint32_t repeats,
                              duration within) {
  const auto by = means_of(members);
  std::uint32_t first_rank = 0;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    const auto devices = by.ranks > 0 ? now_->nodes[members[place]].ranks : 0;
    const auto request = author_.write<GroupProbeWanted>({}, [&](GroupProbeWanted::Builder b) {
      b.setCheck(number_);
      b.setRound(now_->round);
      b.setGroup(static_cast<std::uint32_t>(group));
      b.setPlace(place);
      write_members(b, members, place);
      auto bytes = b.initSizes(static_cast<unsigned>(sizes.size()));
      for (unsigned i = 0; i < sizes.size(); ++i)
        bytes.set(i, sizes[i]);
      b.setRepeats(repeats);
      b.setWithinMs(static_cast<std::uint64_t>(milliseconds_of(within)));
      b.setDevices(devices);
      b.setFirstRank(first_rank);
      b.setRanks(by.ranks);
      b.setPaced(now_->alone);
    });
    first_rank += devices;
    now_->open.emplace(std::pair{group, members[place]}, true);
    if (is_witness(members[place]))
      out.push_back(ask_witness{request.any()});
    else
      out.push_back(say{name(members[place]), request.any()});
  }
  now_->asked += members.size();
  bool begin = false;
  if (by.ranks > 0)
    for (const auto n : members)
      begin = !std::exchange(now_->nodes[n].has_begun, true) || begin;
  now_->begin_devices.push_back(begin);
  if (begin)
    now_->devices_open += members.size();
}

/// The others have had as much time as those that answered needed, and more. Not so devices that
/// reduce by their library for the first time: how long that takes at one node says nothing of
/// another.
void check_run_core::answered(effects& out, instant now, std::size_t group, index n) {
  now_->open.erase({group, n});
  if (now_->open.empty())
    return end_step(out, now);
  if (group < now_->begin_devices.size() && now_->begin_devices[group])
    --now_->devices_open;
  if (now_->devices_open == 0 && 2 * (now_->asked - now_->open.size()) >= now_->asked)
    now_->until =
        std::min(now_->until, now_->step_began + std::max<duration>(limits::check_patience_least,
                                                                    limits::check_patience_factor *
                                                                        (now - now_->step_began)));
}

void check_run_core::end_step(effects& out, instant now) {
  switch (now_->at) {
  case step::alone:
    await_late(out, now);
    return after_alone(out, now);
  case step::alone_again:
  case step::late:
    return next_round(out, now);
  case step::groups:
    for (const auto& [which, unused] : now_->open)
      out.push_back(note{silent_in_words(name_on_links(which.second), now)});
    now_->results.rounds.push_back(now_->groups);
    return next_round(out, now);
  case step::perf_test:
    return conclude(out, now);
  }
}

void check_run_core::next_round(effects& out, instant now) {
  settle_late(now);
  auto next = network_check::next_step(now_->results, now_->policy);
  if (std::holds_alternative<network_check::verdict>(next) && waits_for_late(now))
    return;
  if (const auto* v = std::get_if<network_check::verdict>(&next);
      v && is_undecidable(*v) && call_witness())
    next = network_check::next_step(now_->results, now_->policy);
  if (const auto* groups = std::get_if<network_check::groups>(&next))
    return ask_groups(out, now, *groups);
  now_->said = std::move(std::get<network_check::verdict>(next));
  measure_all(out, now);
}

/// Whether it is there now, and was not before.
bool check_run_core::call_witness() {
  const auto& w = options_.witness;
  if (!w || now_->results.witness || now_->by_name.count(w->name) != 0 ||
      std::any_of(now_->nodes.begin(), now_->nodes.end(),
                  [&w](const node& n) { return w->is_beside(n.address); }))
    return false;
  const auto at = static_cast<index>(now_->count);
  now_->results.witness = at;
  now_->results.nodes.emplace_back("the master");
  now_->results.alone.emplace_back();
  now_->nodes.push_back({{}, w->port});
  now_->by_name.emplace(w->name, at);
  return true;
}

void check_run_core::measure_all(effects& out, instant now) {
  const auto& good = now_->said->good;
  if (options_.perf_test_sizes.empty() || now_->alone || good.size() < 2)
    return conclude(out, now);
  const auto within = limits::perf_test_patience * options_.within;
  begin_step(now, step::perf_test, within);
  ++now_->round;
  now_->measured_nodes = good.size();
  now_->measured_by = means_of(good);
  ask_ring(out, 0, good, options_.perf_test_sizes, limits::perf_test_repeats, within);
}

void check_run_core::conclude(effects& out, instant now) {
  tell_findings(out);
  tell_nodes(out);
  tell_bandwidths(out);
  out.push_back(note{concluded_in_words(now)});
  for (const auto& f : now_->said->findings)
    if (f.what == network_check::finding::kind::faulty_node && !now_->nodes[f.nodes.front()].lost)
      out.push_back(mark{name(f.nodes.front()), now_->nodes[f.nodes.front()].address, f.reason});
  out.push_back(answer{answer_message()});
  now_.reset();
}

} // namespace troupe::actors
