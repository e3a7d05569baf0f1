#include "tests/actors/diagnosis_world.hpp"

#include "actors/limits.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace troupe::actors::testing {

using namespace messages;

namespace {

void must(bool holds, const char* what) {
  if (!holds)
    throw std::logic_error(what);
}

diagnosis_policy policy_of(const fate& choose) {
  diagnosis_policy p;
  p.action = static_cast<hang_action>(choose(3));
  return p;
}

} // namespace

diagnosis_world::diagnosis_world(fate choose)
    : choose_(std::move(choose)), master_(author("master/diagnosis"), policy_of(choose_)) {
  for (int i = 0; i < 2; ++i)
    nodes_.emplace_back(
        hang_watchdog_core(fmt::format("n{}", i), author(fmt::format("n{}/hang_watchdog", i))));
  start_generation();
}

std::uint64_t diagnosis_world::any_number() {
  switch (choose_(4)) {
  case 0:
    return choose_(8);
  case 1:
    return UINT64_MAX - choose_(3);
  default:
    return choose_(1u << 16);
  }
}

void diagnosis_world::start_generation() {
  ++generation_;
  perform(master_.sealed(now_, planner_.write<Sealed>(generation{generation_}, [&](auto b) {
    auto w = b.initWorld();
    w.setGeneration(generation_);
    w.setWorldSize(2 * per_node);
    auto members = w.initMembers(2);
    for (unsigned i = 0; i < 2; ++i) {
      members[i].setNode(fmt::format("n{}", i));
      members[i].setFirstRank(i * per_node);
      members[i].setSlots(per_node);
    }
  })));
  for (unsigned i = 0; i < 2; ++i)
    perform(nodes_[i], nodes_[i].core.watched(
                           now_, planner_.write<Watched>(generation{generation_}, [&](auto b) {
                             b.setWorldSize(2 * per_node);
                             auto list = b.initProcesses(per_node);
                             for (unsigned l = 0; l < per_node; ++l) {
                               list[l].setRank(i * per_node + l);
                               list[l].setLocalRank(l);
                               list[l].setPid(static_cast<std::int32_t>(100 * generation_ + l));
                             }
                           })));
}

/// Anything that read_page() lets through.
void diagnosis_world::scribble(node& n) {
  auto& p = n.pages[choose_(per_node)];
  const auto now_ns = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  p.feeds = choose_(128);
  p.steps_made += choose_(5);
  p.step = any_number();
  p.step_ns = choose_(2) ? now_ns : choose_(1u << 30);
  p.phase_now = static_cast<diag::phase>(choose_(diag::phases));
  p.phase_ns = choose_(2) ? now_ns : 0;
  auto& h =
      choose_(2) ? p.step_durations : p.each_phase[static_cast<std::size_t>(p.phase_now)].durations;
  const auto bucket = choose_(h.counts.size());
  const auto more = static_cast<std::uint32_t>(choose_(diag::duration_histogram::fades_at));
  h.total += more - h.counts[bucket];
  h.counts[bucket] = more;
  if (p.communicators.size() < 4 && choose_(2))
    p.communicators.push_back({choose_(2) ? "0" : "tp", choose_(8)});
  for (auto& c : p.communicators) {
    c.members_hash = choose_(3);
    c.entered = choose_(4) ? c.entered + choose_(3) : any_number();
    c.left = std::min(c.entered, choose_(2) ? c.entered : any_number());
    c.kind = static_cast<diag::collective>(choose_(13));
    c.bytes = choose_(3);
    c.entered_ns = choose_(2) ? now_ns : 0;
    c.waited_ns += choose_(1u << 20);
  }
}

diag::process_look diagnosis_world::any_look(std::uint32_t local) {
  diag::process_look l;
  l.local_rank = local;
  l.pid = static_cast<std::int32_t>(100 * generation_ + local);
  l.state = "RSDTtZX"[choose_(7)];
  l.cpu_time = std::chrono::milliseconds(choose_(100'000));
  l.io_bytes = choose_(4) == 1 ? any_number() : 0;
  l.traced = choose_(100) == 1;
  if (choose_(8) != 1)
    l.threads.push_back({l.pid, l.cpu_time, choose_(3)});
  l.place = choose_(2) ? std::string(choose_(600), 'p') : "fsync()";
  if (choose_(2))
    l.children.push_back({7,
                          "data loader worker 0",
                          "RSDTZ" [choose_(5)],
                          {},
                          any_number(),
                          {{7, {}, choose_(3)}},
                          "read()"});
  for (auto i = choose_(4); i > 0; --i)
    l.slow_peers.push_back(fmt::format("10.0.0.{}:1", choose_(3)));
  for (auto i = choose_(20); i > 0; --i)
    l.evidence.emplace_back(choose_(400), 'e');
  return l;
}

void diagnosis_world::perform(node& n, const hang_watchdog_core::effects& effects) {
  must(effects.size() <= 16, "hang_watchdog: effects without bound");
  for (const auto& e : effects) {
    if (const auto* r = std::get_if<hang_watchdog_core::read>(&e)) {
      std::vector<diag::page_reading> readings;
      for (const auto local : r->local_ranks)
        readings.push_back(
            {local, choose_(8) == 1 ? std::nullopt : std::optional(n.pages[local % per_node])});
      perform(n, n.core.pages_read(now_, readings));
    } else if (const auto* l = std::get_if<hang_watchdog_core::look>(&e)) {
      if (n.asked.size() < 8)
        n.asked.push_back(*l);
    } else if (const auto* m = std::get_if<hang_watchdog_core::report>(&e)) {
      if (to_master_.size() < 64)
        to_master_.push_back(m->message);
    }
  }
}

void diagnosis_world::perform(const diagnosis_core::effects& effects) {
  must(effects.size() <= 64, "diagnosis: effects without bound");
  for (const auto& e : effects) {
    const auto* s = std::get_if<diagnosis_core::say>(&e);
    if (!s)
      continue;
    must(admit(s->message.words().begin(), s->message.size_bytes()).has_value(),
         "diagnosis: its message is refused at the border");
    if (s->message.is<Diagnosed>()) {
      ++verdicts_;
      auto d = s->message.as<Diagnosed>().read();
      must(d->getCulprits().size() != 0 || d->getKind() == HangKind::LINK,
           "diagnosis: a verdict without a culprit");
      must(d->getSentence().size() != 0 && d->getSentence().size() <= limits::sentence_max,
           "diagnosis: a sentence without bound");
      for (const auto r : d->getCulprits())
        must(r < 2 * per_node, "diagnosis: a culprit that is no rank");
    }
    for (const auto& to : s->to)
      if (to_nodes_.size() < 64)
        to_nodes_.emplace_back(to == "n0" ? 0 : 1, s->message);
  }
  must(master_.history().size() <= limits::diagnoses_kept, "diagnosis: history without bound");
}

void diagnosis_world::deliver_to_node(node& n, const any_msg& m) {
  if (m.is<ProgressWanted>())
    perform(n, n.core.progress_wanted(now_, m.as<ProgressWanted>()));
  else if (m.is<StacksWanted>())
    perform(n, n.core.stacks_wanted(now_, m.as<StacksWanted>()));
  else if (m.is<Diagnosed>())
    perform(n, n.core.diagnosed(now_, m.as<Diagnosed>()));
  else if (m.is<Cleared>())
    perform(n, n.core.cleared(now_, m.as<Cleared>()));
}

void diagnosis_world::strike() {
  auto& n = nodes_[choose_(2)];
  const auto what = choose_(16);
  if (what <= 4) {
    // To the next wake-up of all, or somewhere else.
    auto next =
        now_ + std::chrono::milliseconds(choose_(50) == 1 ? choose_(600'000) : choose_(400));
    for (const auto& each : nodes_)
      if (const auto at = each.core.next_wakeup(); at && choose_(2))
        next = std::min(next, std::max(now_, *at));
    now_ = std::max(now_, next);
    if (choose_(40) == 1)
      slept_ += std::chrono::seconds(choose_(10'000));
    for (auto& each : nodes_) {
      perform(each, each.core.tick(now_, slept_));
      const auto at = each.core.next_wakeup();
      must(!at || *at > now_, "hang_watchdog: it is due again at once");
    }
    perform(master_.tick(now_));
    const auto at = master_.next_wakeup();
    must(!at || *at > now_, "diagnosis: it is due again at once");
  } else if (what == 5) {
    scribble(n);
  } else if (what <= 8 && !n.asked.empty()) {
    const auto asked = n.asked.back();
    n.asked.pop_back();
    std::vector<diag::process_look> looks;
    for (const auto local : asked.local_ranks)
      if (choose_(8) != 1)
        looks.push_back(any_look(local));
    perform(n, n.core.looked(now_, asked.question, looks));
  } else if (what <= 12 && !to_master_.empty()) {
    const auto at = to_master_.begin() + static_cast<std::ptrdiff_t>(choose_(to_master_.size()));
    const auto m = *at;
    to_master_.erase(at);
    if (choose_(8) != 1)
      perform(master_.progress(now_, m.as<ProgressReport>()));
  } else if (what <= 14 && !to_nodes_.empty()) {
    const auto at = to_nodes_.begin() + static_cast<std::ptrdiff_t>(choose_(to_nodes_.size()));
    const auto m = *at;
    to_nodes_.erase(at);
    deliver_to_node(nodes_[m.first], m.second);
  } else if (what == 15 && choose_(64) == 1) {
    start_generation();
  }
  must(!n.core.in_words().empty() && !master_.in_words().empty(), "they have words");
}

} // namespace troupe::actors::testing
