#include "tests/sim/loads.hpp"

#include "ckpt/catalog/line.hpp"
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/load/steps_seen.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <optional>
#include <string>

namespace troupe::sim {

namespace {

/// The product's numbers, but that few steps are listed at first so that deeper looks happen.
constexpr std::size_t steps_listed_at_first = 4;
constexpr duration rest = 200ms, storage_tried_for = 30s;
constexpr int rounds_max = 200;

/// Does it, and again while storage fails with what may pass.
template<class Do>
auto tried(world& w, Do&& what) {
  const auto until = w.events.now() + storage_tried_for;
  for (;;) {
    auto done = what();
    if (done || done.error().code != errc::unavailable || w.events.now() > until)
      return done;
    fiber::current()->pass(rest);
  }
}

ckpt::slot_snapshot snapshot_of(const ckpt::state_id& what, global_rank rank, std::size_t world,
                                std::uint64_t bytes) {
  return {what.step, what.save.made_by.value,           what.save.number,
          rank,      static_cast<std::uint32_t>(world), bytes};
}

} // namespace

struct loads::rank {
  std::uint64_t process = 0;
  std::string node;
  local_rank local = 0;
  global_rank number = 0;
  ckpt::rank_view view;
  std::shared_ptr<fiber> thread;
};

struct loads::load {
  generation which;
  std::vector<rank> ranks;
  std::set<ckpt::failed_source> failed;
  std::set<ckpt::save_id> damaged; ///< of steps that were tried
  std::optional<ckpt::state_id> seen_before;
  std::size_t listed = steps_listed_at_first;
  instant looked; ///< for the last time
  std::size_t waiting = 0;
  int rounds = 0;

  void stop() {
    for (auto& r : ranks)
      if (r.thread)
        r.thread->end();
  }
};

loads::~loads() {
  for (const auto& [which, one] : under_way_)
    one->stop();
}

void loads::begin(generation which) {
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    if (goes_on(*at->second)) {
      ++at;
      continue;
    }
    at->second->stop();
    at = under_way_.erase(at);
  }
  const auto begun = under_way_[which] = std::make_shared<load>();
  begun->which = which;
  for (const auto process : all_.training().ranks_of(which)) {
    const auto& p = all_.training().all().at(process - 1);
    auto& r = begun->ranks.emplace_back();
    r.process = process;
    r.node = p.node;
    r.local = p.local;
    r.number = p.rank;
    all_.memory_of(p.node, p.local).writer_died(); // the process before it
  }
  look(begun);
}

bool loads::goes_on(const load& of) const {
  return std::none_of(of.ranks.begin(), of.ranks.end(), [this](auto& r) {
    return all_.training().all().at(r.process - 1).ended.has_value();
  });
}

void loads::at_all(const load_ptr& of, const std::function<void(rank&)>& what,
                   std::function<void()> then) {
  auto& w = all_.all();
  const auto later = [&w](duration d, std::function<void()> next) {
    w.events.in(d, std::move(next));
  };
  of->waiting = of->ranks.size();
  for (auto& r : of->ranks)
    r.thread = fiber::start(later, [this, of, &r, what, then, &w] {
      fiber::current()->pass(w.between(1us, 2ms));
      what(r);
      w.events.in({}, [this, of, then] {
        if (--of->waiting == 0 && goes_on(*of))
          then();
      });
    });
}

void loads::look(const load_ptr& of) {
  if (++of->rounds > rounds_max)
    return all_.all().blame("loads_end", fmt::format("generation {} still looks for what to go on "
                                                     "from after {} rounds",
                                                     of->which.value, rounds_max));
  of->looked = all_.all().events.now();
  at_all(
      of,
      [this, load = of.get()](rank& r) {
        r.view = {};
        see_disk(*load, r);
        see_memory(*load, r);
      },
      [this, of] { plan(of); });
}

void loads::see_memory(const load& of, rank& r) {
  r.view.holds = true;
  const auto words = all_.memory_of(r.node, r.local);
  for (const auto slot : words.oldest_first()) {
    const auto& says = words.snapshot(slot);
    const bool replicated = all_.options().replicated;
    if (words.word(slot).state == ckpt::slot_state::ready &&
        (replicated || says.world_size == of.ranks.size()))
      r.view.memory.push_back({{{generation{says.generation}, says.save}, says.step},
                               says.bytes,
                               replicated ? r.number : says.rank});
  }
  r.view.parities = all_.parities_at(r.node, r.local, static_cast<std::uint32_t>(of.ranks.size()));
}

void loads::see_disk(const load& of, rank& r) {
  sim_storage storage(all_.all(), all_.place_of(r.node));
  result<void> seen;
  do {
    seen = tried(all_.all(), [&] { return ckpt::see_steps(storage, of.listed, r.view); });
    if (!seen && seen.error().code != errc::unavailable)
      all_.all().blame("loads_can_look", seen.error().what);
  } while (!seen); // A place that cannot be read ends the process, and the next one looks.
}

void loads::plan(const load_ptr& of) {
  using outcome = ckpt::load_plan::outcome;
  ckpt::load_question q;
  for (const auto& r : of->ranks)
    q.ranks.push_back(r.view);
  q.shards = all_.options().replicated ? 1 : static_cast<std::uint32_t>(of->ranks.size());
  q.failed = of->failed;
  q.seen_before = of->seen_before;
  const auto plan = ckpt::plan_load(q);
  of->seen_before.reset();
  switch (plan.how) {
  case outcome::look_again:
    of->seen_before = plan.newest_seen;
    all_.all().events.in(rest, [this, of] {
      if (goes_on(*of))
        look(of);
    });
    return;
  case outcome::look_deeper:
    of->listed *= 8;
    of->seen_before = plan.newest_seen;
    return look(of);
  case outcome::misfit:
  case outcome::reshard: // Not asked for here.
    return all_.all().write("-", fmt::format("load   g{} finds step {} of a world of {}",
                                             of->which.value, plan.misfits.id.step,
                                             plan.misfits.world_size));
  case outcome::nothing:
    return end(of, plan);
  case outcome::load:
    of->seen_before = plan.newest_seen;
    return plan.is_done() ? end(of, plan) : carry_out(of, plan);
  }
}

void loads::carry_out(const load_ptr& of, const ckpt::load_plan& plan) {
  set_sent(*of, plan, true);
  at_all(
      of,
      [this, load = of.get(), plan](rank& r) {
        const auto from = plan.from[r.number];
        if (from == ckpt::source::peer)
          take_from_peer(*load, r, plan);
        if (from == ckpt::source::disk)
          read(*load, r, plan.what);
        if (from == ckpt::source::pieces)
          rebuild(*load, r, plan);
      },
      [this, of, plan] {
        set_sent(*of, plan, false);
        look(of);
      });
}

/// What a rank is to send stays until it has: what it gets itself takes another's place.
void loads::set_sent(const load& of, const ckpt::load_plan& plan, bool begins) {
  const auto set = [&](global_rank source, global_rank part) {
    const auto& at = of.ranks.at(source);
    const auto slot = slot_with(at, plan.what, part);
    auto words = all_.memory_of(at.node, at.local);
    if (slot && begins)
      words.set_mapped(*slot, words.word(*slot).sequence);
    else if (slot)
      words.clear_mapped(*slot);
  };
  for (const auto& one : plan.moves)
    set(one.source, one.to);
  for (const auto& t : plan.pieces.transfers)
    if (!t.parity)
      set(t.source, t.of);
}

std::optional<std::size_t> loads::slot_with(const rank& at, const ckpt::state_id& what,
                                            global_rank part) const {
  const auto words = all_.memory_of(at.node, at.local);
  for (const auto slot : words.oldest_first()) {
    const auto& says = words.snapshot(slot);
    if (words.word(slot).state == ckpt::slot_state::ready && says.rank == part &&
        says.step == what.step &&
        ckpt::save_id{generation{says.generation}, says.save} == what.save)
      return slot;
  }
  return std::nullopt;
}

void loads::take_from_peer(load& of, rank& r, const ckpt::load_plan& plan) {
  auto made = snapshot_of(plan.what, r.number, of.ranks.size(), 0);
  made.bytes = all_.content_of(made).size();
  const auto move =
      std::find_if(plan.moves.begin(), plan.moves.end(),
                   [&r](const ckpt::moved_snapshot& one) { return one.to == r.number; });
  if (move != plan.moves.end()) {
    const auto& source = of.ranks.at(move->source);
    if (!slot_with(source, plan.what, r.number)) {
      of.failed.insert({r.number, ckpt::source::peer, plan.what});
      return;
    }
    all_.all().write(r.node, fmt::format("load   step {} of rank {} comes from {}, which had that "
                                         "rank",
                                         made.step, made.rank, source.node));
  }
  keep(r, made);
}

/// The product's ranks send each other what they have; here the one that lacks it takes it.
void loads::rebuild(load& of, rank& r, const ckpt::load_plan& plan) {
  const auto lost =
      std::find_if(plan.pieces.rebuilt.begin(), plan.pieces.rebuilt.end(),
                   [&r](const ckpt::rebuilt_snapshot& one) { return one.rank == r.number; });
  invariant(lost != plan.pieces.rebuilt.end(), "a source without a plan");
  const auto content = summed(of, *lost, plan);
  const auto made = snapshot_of(plan.what, r.number, of.ranks.size(), lost->bytes);
  if (!content) {
    all_.all().write(r.node, "load   " + content.error().what);
    of.failed.insert({r.number, ckpt::source::pieces, plan.what});
    return;
  }
  if (*content != all_.content_of(made))
    all_.all().blame("loads_are_what_was_saved",
                     fmt::format("step {} of rank {} is '{}', summed from pieces", made.step,
                                 made.rank, *content));
  all_.all().write(r.node, fmt::format("load   step {} of rank {} comes from pieces that others "
                                       "hold",
                                       made.step, made.rank));
  keep(r, made);
}

result<std::string> loads::summed(const load& of, const ckpt::rebuilt_snapshot& lost,
                                  const ckpt::load_plan& plan) {
  std::string sum(lost.bytes, '\0');
  for (const auto& t : plan.pieces.transfers) {
    if (t.to != lost.rank)
      continue;
    fiber::current()->pass(all_.all().between(10us, 1ms));
    const auto from = memory_of_source(of, t, plan.what);
    if (!from)
      return from;
    const auto bytes = t.end - t.begin;
    invariant(t.end <= from->size() && t.into + bytes <= sum.size(), "a transfer beyond an end");
    ckpt::accumulate(sum.data() + t.into, from->data() + t.begin, bytes, t.times);
  }
  if (libdeflate_crc32(0, sum.data(), sum.size()) != lost.crc32)
    return failure(errc::invalid, fmt::format("step {} of rank {} from pieces at other nodes is "
                                              "damaged",
                                              plan.what.step, lost.rank));
  return sum;
}

/// As it is at this moment: the source may have lost it since the plan was made.
result<std::string> loads::memory_of_source(const load& of, const ckpt::transfer& t,
                                            const ckpt::state_id& what) {
  const auto& from = of.ranks.at(t.source);
  if (t.parity) {
    const auto* const there =
        all_.memory_of_others(from.node).bytes_of(from.local, t.parity->slot, t.parity->sequence);
    if (there)
      return *there;
  } else {
    if (const auto slot = slot_with(from, what, t.of))
      return all_.content_of(all_.memory_of(from.node, from.local).snapshot(*slot));
  }
  return failure(errc::invalid,
                 fmt::format("what rank {} was to send is not in memory any more", t.source));
}

/// As long as all memory holds what is to be written, until that is written or given up.
void loads::keep(rank& r, const ckpt::slot_snapshot& what) {
  while (!all_.put(r.node, r.local, what))
    fiber::current()->pass(rest);
}

/// The product compares checksums, and a file that is another save's must not get past them.
void loads::read(load& of, rank& r, const ckpt::state_id& what) {
  sim_storage storage(all_.all(), all_.place_of(r.node));
  const auto number = all_.options().replicated ? 0 : r.number;
  std::string content;
  const auto got = tried(all_.all(), [&]() -> result<void> {
    const auto found = ckpt::find_shard(storage, what, number);
    if (!found)
      return tl::make_unexpected(found.error());
    const auto bytes = ckpt::memory_of(storage, found->of, found->which);
    if (!bytes)
      return tl::make_unexpected(bytes.error());
    content.resize(*bytes);
    return ckpt::load_shard(storage, found->of, found->which,
                            {reinterpret_cast<std::byte*>(content.data()), content.size()},
                            ports::never_stops);
  });
  const auto made = snapshot_of(what, r.number, of.ranks.size(), content.size());
  if (got && content != all_.content_of(made))
    all_.all().blame("loads_are_what_was_saved",
                     fmt::format("step {} of rank {} is '{}'", made.step, made.rank, content));
  if (got)
    return keep(r, made);
  all_.all().write(r.node, "load   " + got.error().what);
  of.failed.insert({r.number, ckpt::source::disk, what});
  if (got.error().code == errc::invalid || got.error().code == errc::absent)
    of.damaged.insert(what.save);
}

void loads::end(const load_ptr& of, const ckpt::load_plan& plan) {
  load_outcome what;
  what.by = of->which;
  what.looked = of->looked;
  for (const auto& r : of->ranks)
    what.nodes.push_back(r.node);
  if (plan.how == ckpt::load_plan::outcome::load) {
    what.id = plan.what.save;
    what.step = plan.what.step;
    all_.go_back_to(of->which, plan.what);
  }
  all_.all().write("-", fmt::format("load   g{} goes on from {}", of->which.value,
                                    what.id ? fmt::format("step {}", what.step) : "nothing"));
  all_.all().tell(&observer::loaded, what);
  at_all(
      of, [this, load = of.get(), what](rank& r) { begin_run(*load, r, what); },
      [this, of, what] {
        all_.go_on_from(of->which, what.id ? std::optional(what.step) : std::nullopt);
      });
}

/// Of each node one rank has to do with the place alone. What cannot be written now is left out:
/// then no step of an earlier run is removed.
void loads::begin_run(const load& of, rank& r, const load_outcome& what) {
  const bool first = std::none_of(of.ranks.begin(), of.ranks.end(), [&r](const rank& other) {
    return other.node == r.node && other.local < r.local;
  });
  if (!first)
    return;
  sim_storage storage(all_.all(), all_.place_of(r.node));
  const ckpt::origin from{what.id, {}, {}, {of.damaged.begin(), of.damaged.end()}};
  if (const auto begun = ckpt::begin_run(storage, {"job", of.which}, of.which, from); !begun)
    all_.all().write(r.node, "load   no record of the run: " + begun.error().what);
}

} // namespace troupe::sim
