#include "tests/actors/training_model.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors::testing {

using namespace messages;

namespace {

constexpr instant model_dawn = instant{} + 1h;
constexpr auto all_feeds = static_cast<std::uint64_t>(diag::feed::trace) * 2 - 1;
constexpr std::uint64_t warm_steps = 1'000;

std::uint64_t count(duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
}

void count_duration(diag::duration_counts& h, duration d) {
  if (h.total >= diag::duration_histogram::fades_at) {
    h.total = 0;
    for (auto& each : h.counts)
      h.total += each /= 2;
  }
  ++h.counts[diag::bucket_of(count(d))];
  ++h.total;
}

node_name name_of_node(std::uint32_t n) {
  return fmt::format("n{}", n);
}

} // namespace

training_model::training_model(std::uint64_t seed, shape s, diagnosis_policy policy,
                               watch_policy watch)
    : now(model_dawn), shape_(std::move(s)), chance_(seed), ranks_(shape_.ranks),
      master_(messages::author("master/diagnosis"), policy) {
  if (shape_.groups.empty()) {
    shape_.groups.push_back({"0", {}});
    for (std::uint32_t r = 0; r < shape_.ranks; ++r)
      shape_.groups[0].members.push_back(r);
  }
  for (std::uint32_t g = 0; g < shape_.groups.size(); ++g)
    for (const auto r : shape_.groups[g].members)
      ranks_[r].groups.push_back(g);
  for (std::uint32_t first = 0; first < shape_.ranks; first += shape_.per_node) {
    const auto n = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(std::make_unique<node>(hang_watchdog_core(
        name_of_node(n), messages::author(fmt::format("{}/hang_watchdog", name_of_node(n))),
        watch)));
    nodes_[n]->first = first;
    nodes_[n]->count = std::min(shape_.per_node, shape_.ranks - first);
    for (std::uint32_t r = first; r < first + nodes_[n]->count; ++r)
      ranks_[r].node = n;
  }
  start_generation();
}

std::uint64_t training_model::ns() const {
  return count(now.time_since_epoch());
}
duration training_model::latency() {
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(slowest_message).count();
  return 200us + std::chrono::microseconds(chance_.below(static_cast<std::uint64_t>(most)));
}

/// After the one before it on the same way.
instant training_model::arrives(instant& last) {
  return last = std::max(last, now + latency());
}

void training_model::push(instant when, event::kind_t kind, std::uint32_t which, std::uint64_t life,
                          std::function<void()> what) {
  events_.push({when, ++order_, kind, which, life, std::move(what)});
}

void training_model::at(duration after, std::function<void()> what) {
  push(now + after, event::other, 0, 0, std::move(what));
}

void training_model::start_generation() {
  ++generation_;
  collectives_.assign(shape_.groups.size(), {});
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    auto& k = ranks_[r];
    rank fresh;
    fresh.groups = std::move(k.groups);
    fresh.node = k.node;
    fresh.life = k.life + 1;
    fresh.look_cpu_at = now;
    k = std::move(fresh);
    k.page.pid = 1'000 * generation_ + r;
    k.page.feeds = all_feeds;
    if (!shape_.says_ends)
      k.page.feeds &= ~static_cast<std::uint64_t>(diag::feed::collective_ends) &
                      ~static_cast<std::uint64_t>(diag::feed::trace);
    if (!shape_.says_collectives)
      k.page.feeds &= ~static_cast<std::uint64_t>(diag::feed::collectives) &
                      ~static_cast<std::uint64_t>(diag::feed::collective_ends) &
                      ~static_cast<std::uint64_t>(diag::feed::trace);
    k.page.step_ns = k.page.phase_ns = k.noted_ns = ns();
    if (shape_.says_collectives && (shape_.says_groups || shape_.begins_warm))
      for (const auto g : k.groups)
        row_of(k, g);
    if (shape_.begins_warm) {
      k.made = warm_steps;
      k.page.silences.total = warm_steps;
      k.page.silences.counts[diag::bucket_of(count(shape_.usual))] = warm_steps;
      if (!shape_.without_steps) {
        k.page.steps_made = k.page.step = warm_steps;
        k.page.step_durations.total = warm_steps;
        k.page.step_durations.counts[diag::bucket_of(count(shape_.usual))] = warm_steps;
      }
      for (auto& c : k.page.communicators)
        c.entered = c.left = warm_steps;
    }
    push(now + latency(), event::of_rank, r, k.life);
  }
  for (std::uint32_t g = 0; g < collectives_.size(); ++g)
    collectives_[g].number = (shape_.begins_warm ? warm_steps : 0) + 1;
  const auto sealed = planner_.write<Sealed>(generation{generation_}, [&](Sealed::Builder b) {
    auto w = b.initWorld();
    w.setGeneration(generation_);
    w.setWorldSize(shape_.ranks);
    auto members = w.initMembers(static_cast<unsigned>(nodes_.size()));
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      members[n].setNode(name_of_node(n));
      members[n].setFirstRank(nodes_[n]->first);
      members[n].setSlots(nodes_[n]->count);
    }
  });
  perform(master_.sealed(now, sealed));
  for (auto& n : nodes_) {
    const auto m = planner_.write<Watched>(generation{generation_}, [&](Watched::Builder b) {
      b.setWorldSize(shape_.ranks);
      auto list = b.initProcesses(n->count);
      for (std::uint32_t i = 0; i < n->count; ++i) {
        list[i].setRank(n->first + i);
        list[i].setLocalRank(i);
        list[i].setPid(static_cast<std::int32_t>(ranks_[n->first + i].page.pid));
      }
    });
    perform(*n, n->core.watched(now, m));
    arm_node(ranks_[n->first].node);
  }
}

void training_model::restart(duration down) {
  for (auto& k : ranks_) {
    ++k.life;
    k.frozen = false;
  }
  for (const auto& n : nodes_)
    tell_no_processes(*n, false);
  perform(master_.ended(now, generation{generation_}));
  at(down, [this] { start_generation(); });
}

// ---- time ----

void training_model::run(duration how_long) {
  const auto until = now + how_long;
  while (!events_.empty() && events_.top().at <= until) {
    auto e = events_.top();
    events_.pop();
    now = std::max(now, e.at);
    const auto pause = e.kind == event::of_rank   ? nodes_[ranks_[e.which].node]->paused_until
                       : e.kind == event::of_node ? nodes_[e.which]->paused_until
                                                  : instant{};
    if (pause > now) {
      e.at = pause;
      events_.push(e);
      continue;
    }
    switch (e.kind) {
    case event::of_rank:
      if (ranks_[e.which].life != e.life)
        break;
      if (ranks_[e.which].frozen)
        ranks_[e.which].held = true;
      else
        step_rank(e.which);
      break;
    case event::ends:
      if (e.life == generation_)
        end_collective(e.which);
      break;
    case event::of_node:
      if (e.what) {
        e.what();
      } else if (nodes_[e.which]->wakes && *nodes_[e.which]->wakes <= now) {
        nodes_[e.which]->wakes.reset();
        perform(*nodes_[e.which], nodes_[e.which]->core.tick(now, slept_));
      }
      arm_node(e.which);
      break;
    case event::of_master:
      if (e.what) {
        e.what();
      } else if (master_wakes_ && *master_wakes_ <= now) {
        master_wakes_.reset();
        perform(master_.tick(now));
      }
      arm_master();
      break;
    case event::other:
      e.what();
      break;
    }
  }
  now = until;
}

void training_model::arm_node(std::uint32_t which) {
  auto& n = *nodes_[which];
  const auto next = n.core.next_wakeup();
  if (!next || (n.wakes && *n.wakes <= *next))
    return;
  n.wakes = next;
  push(std::max(now, *next), event::of_node, which);
}

void training_model::arm_master() {
  const auto next = master_.next_wakeup();
  if (!next || (master_wakes_ && *master_wakes_ <= *next))
    return;
  master_wakes_ = next;
  push(std::max(now, *next), event::of_master, 0);
}

void training_model::pause_node(std::uint32_t which, duration how_long) {
  nodes_[which]->paused_until = now + how_long;
}

void training_model::pause_all(duration how_long) {
  for (auto& n : nodes_)
    n->paused_until = now + how_long;
}

// ---- ranks ----

void training_model::note(rank& k) {
  count_duration(k.page.silences, duration(ns() - k.noted_ns));
  k.noted_ns = ns();
}

void training_model::set_phase(rank& k, diag::phase p) {
  if (shape_.without_steps)
    return;
  note(k);
  auto& before = k.page.each_phase[static_cast<std::size_t>(k.page.phase_now)];
  count_duration(before.durations, duration(ns() - k.page.phase_ns));
  k.page.phase_now = p;
  k.page.phase_ns = ns();
  ++k.page.each_phase[static_cast<std::size_t>(p)].entered;
}

void training_model::step_rank(std::uint32_t r) {
  auto& k = ranks_[r];
  const auto step = k.made;
  const auto later = [&](duration d, op next) {
    k.at = next;
    push(now + d, event::of_rank, r, k.life);
  };
  switch (k.at) {
  case op::begin: {
    k.group_at = 0;
    if (auto i = before_step ? before_step(r, step) : std::nullopt) {
      set_phase(k, i->in);
      k.looks = i->looks;
      if (i->batches > duration::zero())
        for (auto t = i->batches; t < i->lasts; t += i->batches)
          push(now + t, event::other, 0, 0, [this, r] { ranks_[r].page.touched_ns = ns(); });
      return later(i->lasts, op::input);
    }
    [[fallthrough]];
  }
  case op::input: {
    set_phase(k, diag::phase::input);
    // Its worker reads.
    k.looks = activity::asleep("poll() of a queue");
    k.looks.children = {{9, "data loader worker 0", 'R', {}, 0, {{9, {}, 1}}, "decode()"}};
    k.looks.children_move = true;
    if (k.input_never) {
      k.looks = *k.input_never;
      k.frozen = true;
      began = now;
    }
    return later(input ? input(r, step) : shape_.usual / 50, op::compute);
  }
  case op::compute: {
    set_phase(k, diag::phase::forward);
    k.looks = {};
    const auto d = compute ? compute(r, step) : shape_.usual * 9 / 10;
    return later(duration(static_cast<duration::rep>(static_cast<double>(d.count()) * k.factor)),
                 op::collective);
  }
  case op::collective: {
    if (k.group_at == 0)
      set_phase(k, diag::phase::backward);
    if (k.skips || k.group_at >= k.groups.size())
      return later(100us, op::end);
    const auto which = k.swaps ? k.groups.size() - 1 - k.group_at : k.group_at;
    return enter(r, k.groups[which]);
  }
  case op::end:
    make_step(r);
    return later(shape_.usual / 100, op::begin);
  }
}

void training_model::make_step(std::uint32_t r) {
  auto& k = ranks_[r];
  ++k.made;
  if (shape_.without_steps)
    return;
  note(k);
  const duration took(ns() - k.page.step_ns);
  count_duration(k.page.step_durations, took);
  k.page.step_longest_ns = std::max(k.page.step_longest_ns, count(took));
  ++k.page.steps_made;
  ++k.page.step;
  k.page.step_ns = ns();
}

diag::communicator_view& training_model::row_of(rank& k, std::uint32_t g) const {
  auto& rows = k.page.communicators;
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [g](const auto& each) { return each.members_hash == g + 1; });
  if (found != rows.end())
    return *found;
  diag::communicator_view row;
  row.name = shape_.groups[g].name;
  row.members = shape_.groups[g].members.size();
  row.members_hash = g + 1;
  return rows.emplace_back(std::move(row));
}

void training_model::enter(std::uint32_t r, std::uint32_t g) {
  auto& k = ranks_[r];
  auto& c = collectives_[g];
  k.looks = activity::waits();
  if (shape_.says_collectives) {
    auto& row = row_of(k, g);
    ++row.entered;
    row.entered_ns = ns();
    row.kind = k.wrong_kind        ? diag::collective::broadcast
               : shape_.two_by_two ? diag::collective::recv
                                   : diag::collective::all_reduce;
    note(k);
    row.bytes = 4'096;
  }
  if (k.wrong_kind && !std::exchange(c.broken, true))
    began = now;
  if (++c.here == shape_.groups[g].members.size() && !c.broken)
    push(now + (network ? network(k.made) : 300us), event::ends, g, generation_);
}

void training_model::end_collective(std::uint32_t g) {
  auto& c = collectives_[g];
  // It was cut meanwhile.
  if (c.broken)
    return;
  ++c.number;
  c.here = 0;
  for (const auto r : shape_.groups[g].members) {
    auto& k = ranks_[r];
    for (auto& row : k.page.communicators)
      if (row.members_hash == g + 1 && shape_.says_ends) {
        row.left = row.entered;
        row.left_ns = ns();
        row.waited_ns += ns() - row.entered_ns;
        note(k);
      }
    ++k.group_at;
    k.at = op::collective;
    push(now, event::of_rank, r, k.life);
  }
}

std::uint64_t training_model::steps() const {
  std::uint64_t sum = 0;
  for (const auto& k : ranks_)
    sum += k.made;
  return sum;
}

// ---- the ports ----

diag::page_reading training_model::reading_of(std::uint32_t r, std::uint32_t local) const {
  const auto& k = ranks_[r];
  return {local, k.page, k.gone ? 'X' : k.looks.state};
}

void training_model::perform(node& n, const hang_watchdog_core::effects& effects) {
  const auto which = ranks_[n.first].node;
  for (const auto& e : effects) {
    if (const auto* r = std::get_if<hang_watchdog_core::read>(&e)) {
      ++reads;
      std::vector<diag::page_reading> pages;
      for (const auto local : r->local_ranks)
        pages.push_back(reading_of(n.first + local, local));
      perform(n, n.core.pages_read(now, pages));
    } else if (const auto* l = std::get_if<hang_watchdog_core::look>(&e)) {
      push(now + 5ms + std::chrono::microseconds(chance_.below(15'000)), event::of_node, which, 0,
           [this, which, asked = *l] {
             std::vector<diag::process_look> looks;
             for (const auto local : asked.local_ranks)
               if (!ranks_[nodes_[which]->first + local].gone)
                 looks.push_back(look(nodes_[which]->first + local));
             perform(*nodes_[which], nodes_[which]->core.looked(now, asked.question, looks));
           });
    } else if (const auto* m = std::get_if<hang_watchdog_core::report>(&e)) {
      ++reports;
      if (!n.mute)
        push(arrives(n.last_report), event::of_master, 0, 0, [this, report = m->message] {
          perform(master_.progress(now, report.as<ProgressReport>()));
        });
    } else if (std::get_if<hang_watchdog_core::dump>(&e)) {
      ++dumps;
    }
  }
}

void training_model::to_node(std::uint32_t which, messages::any_msg m) {
  push(arrives(nodes_[which]->last_order), event::of_node, which, 0, [this, which, m] {
    auto& n = *nodes_[which];
    if (m.is<ProgressWanted>())
      perform(n, n.core.progress_wanted(now, m.as<ProgressWanted>()));
    else if (m.is<StacksWanted>())
      perform(n, n.core.stacks_wanted(now, m.as<StacksWanted>()));
    else if (m.is<Diagnosed>())
      perform(n, n.core.diagnosed(now, m.as<Diagnosed>()));
    else if (m.is<Cleared>())
      perform(n, n.core.cleared(now, m.as<Cleared>()));
  });
}

void training_model::perform(const diagnosis_core::effects& effects) {
  for (const auto& e : effects) {
    if (const auto* n = std::get_if<diagnosis_core::note>(&e))
      notes.push_back(n->event.text);
    const auto* s = std::get_if<diagnosis_core::say>(&e);
    if (!s)
      continue;
    if (s->message.is<Diagnosed>()) {
      auto d = s->message.as<Diagnosed>().read();
      said v{now, d->getKind(), {}, d->getSentence().cStr()};
      for (const auto r : d->getCulprits())
        v.culprits.push_back(r);
      verdicts.push_back(std::move(v));
    } else if (s->message.is<Cleared>()) {
      ++cleared;
    } else if (s->message.is<EndWorker>()) {
      ended.push_back(s->message.as<EndWorker>().read()->getRank());
    }
    for (const auto& to : s->to)
      if (const auto which = static_cast<std::uint32_t>(std::stoul(to.substr(1)));
          !nodes_[which]->mute)
        to_node(which, s->message);
  }
}

} // namespace troupe::actors::testing
