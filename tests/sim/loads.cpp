#include "tests/sim/loads.hpp"

#include "ckpt/catalog/step_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace troupe::sim {

namespace {

/// A node that writes no files: what is missing shows when a file is read.
constexpr auto no_node = "\n";
constexpr std::size_t steps_looked_at = 64;
constexpr int rounds_max = 64;
/// After a directory that could not be listed.
constexpr duration rest = 200ms;

struct seen_state {
  ckpt::save_id id;
  std::uint64_t step = 0;

  friend bool operator<(const seen_state& a, const seen_state& b) {
    return std::make_tuple(a.id, a.step) < std::make_tuple(b.id, b.step);
  }
  friend bool operator==(const seen_state& a, const seen_state& b) {
    return a.id == b.id && a.step == b.step;
  }
};

bool has(const std::vector<seen_state>& all, const seen_state& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

} // namespace

struct loads::rank {
  std::uint64_t process = 0;
  std::string node;
  local_rank local = 0;
  global_rank number = 0;
  std::vector<seen_state> memory, disk;
  bool looked = false, read = false;
  std::shared_ptr<fiber> thread;
};

struct loads::load {
  generation which;
  std::vector<rank> ranks;
  std::set<std::pair<bool, seen_state>> failed; ///< from the disk or not
  std::optional<seen_state> chosen;
  std::size_t waiting = 0;
  int rounds = 0;
};

loads::~loads() {
  if (current_)
    for (auto& r : current_->ranks)
      if (r.thread)
        r.thread->end();
}

void loads::begin(generation which) {
  if (current_)
    for (auto& r : current_->ranks)
      if (r.thread)
        r.thread->end();
  current_ = std::make_shared<load>();
  current_->which = which;
  for (const auto process : all_.whole_world()) {
    const auto& p = all_.training().all().at(process - 1);
    auto& r = current_->ranks.emplace_back();
    r.process = process;
    r.node = p.node;
    r.local = p.local;
    r.number = p.rank;
    all_.memory_of(p.node, p.local).writer_died(); // the process before it
  }
  look(current_);
}

bool loads::goes_on(const load& of) const {
  return current_.get() == &of && std::none_of(of.ranks.begin(), of.ranks.end(), [this](auto& r) {
           return all_.training().all().at(r.process - 1).ended.has_value();
         });
}

void loads::on_fiber(rank& r, std::function<void()> what) {
  auto& events = all_.all().events;
  r.thread = fiber::start(
      [&events](duration d, std::function<void()> then) { events.in(d, std::move(then)); },
      std::move(what));
}

void loads::look(const std::shared_ptr<load>& of) {
  of->waiting = of->ranks.size();
  const auto world_size = of->ranks.size();
  const bool replicated = all_.options().replicated;
  for (auto& r : of->ranks) {
    r.memory.clear();
    r.disk.clear();
    const auto words = all_.memory_of(r.node, r.local);
    for (const auto slot : words.oldest_first()) {
      const auto& says = words.snapshot(slot);
      const bool fits = replicated || (says.rank == r.number && says.world_size == world_size);
      const seen_state state{{generation{says.generation}, says.save}, says.step};
      if (words.word(slot).state == ckpt::slot_state::ready && fits &&
          of->failed.count({false, state}) == 0)
        r.memory.push_back(state);
    }
    on_fiber(r, [this, of, &r, world_size, replicated] {
      sim_storage storage(all_.all(), all_.place_of(r.node));
      fiber::current()->sleep(all_.all().between(1us, 2ms));
      auto known = ckpt::step_catalog::open(storage, no_node);
      while (!known) {
        fiber::current()->sleep(rest);
        known = ckpt::step_catalog::open(storage, no_node);
      }
      for (const auto* step : known->complete_newest_first())
        if (const auto& says = step->says;
            r.disk.size() < steps_looked_at &&
            says.shards.size() == (replicated ? 1 : world_size) &&
            (replicated || says.world_size == world_size))
          r.disk.push_back({says.id(), step->step});
      all_.all().events.in({}, [this, of] {
        if (--of->waiting == 0 && goes_on(*of))
          plan(of);
      });
    });
  }
}

/// The newest state that can be had; of one that is in memory and on the disk, memory's.
void loads::plan(const std::shared_ptr<load>& of) {
  const bool replicated = all_.options().replicated;
  std::optional<std::pair<seen_state, bool>> best;
  const auto consider = [&](bool disk) {
    std::set<seen_state> known;
    for (const auto& r : of->ranks)
      for (const auto& state : disk ? r.disk : r.memory)
        if (of->failed.count({disk, state}) == 0)
          known.insert(state);
    for (const auto& state : known) {
      const auto sees = [&](const rank& r) { return has(disk ? r.disk : r.memory, state); };
      const bool can = replicated || std::all_of(of->ranks.begin(), of->ranks.end(), sees);
      if (can && (!best || best->first < state))
        best = {state, disk};
    }
  };
  consider(false);
  consider(true);
  if (!best || ++of->rounds > rounds_max)
    return end(of, false);
  of->chosen = best->first;
  all_.all().write("-", fmt::format("load   g{} step {} from {}", of->which.value,
                                    best->first.step, best->second ? "disk" : "memory"));
  if (best->second)
    return read(of);
  for (auto& r : of->ranks)
    if (!has(r.memory, *of->chosen)) {
      // From a peer.
      ckpt::slot_snapshot what{of->chosen->step, of->chosen->id.made_by.value,
                               of->chosen->id.number, r.number,
                               static_cast<std::uint32_t>(of->ranks.size()), 0};
      all_.put(r.node, r.local, what);
    }
  end(of, true);
}

/// Whoever reads compares what it read with what that save had: the product compares checksums, and
/// a file that is another save's must not get past them.
void loads::read(const std::shared_ptr<load>& of) {
  of->waiting = of->ranks.size();
  for (auto& r : of->ranks) {
    r.read = false;
    on_fiber(r, [this, of, &r] {
      sim_storage storage(all_.all(), all_.place_of(r.node));
      fiber::current()->sleep(all_.all().between(1us, 2ms));
      const auto known = ckpt::step_catalog::open(storage, no_node);
      const auto* step = known ? known->find(of->chosen->step) : nullptr;
      if (step != nullptr && step->is_complete() && step->says.id() == of->chosen->id) {
        const auto& shard = step->says.shards.at(all_.options().replicated ? 0 : r.number);
        std::string content(shard.file.bytes, '\0');
        const auto got = ckpt::load_shard(
            storage, *step, shard, {reinterpret_cast<std::byte*>(content.data()), content.size()},
            ports::never_stops);
        ckpt::slot_snapshot what{of->chosen->step, of->chosen->id.made_by.value,
                                 of->chosen->id.number, r.number,
                                 static_cast<std::uint32_t>(of->ranks.size()), shard.file.bytes};
        if (got && content != all_.content_of(what))
          all_.all().blame("loads_are_what_was_saved",
                           fmt::format("step {} of rank {} is '{}'", what.step, what.rank,
                                       content));
        r.read = got && all_.put(r.node, r.local, what);
        if (!got)
          all_.all().write(r.node, "load   " + got.error().what);
      }
      all_.all().events.in({}, [this, of] {
        if (--of->waiting != 0 || !goes_on(*of))
          return;
        const auto could = [](const rank& one) { return one.read; };
        const bool replicated = all_.options().replicated;
        if (replicated ? std::any_of(of->ranks.begin(), of->ranks.end(), could)
                       : std::all_of(of->ranks.begin(), of->ranks.end(), could))
          return end(of, true);
        of->failed.insert({true, *of->chosen});
        look(of);
      });
    });
  }
}

void loads::end(const std::shared_ptr<load>& of, bool found) {
  load_outcome what;
  what.by = of->which;
  for (const auto& r : of->ranks)
    what.nodes.push_back(r.node);
  if (found) {
    what.id = of->chosen->id;
    what.step = of->chosen->step;
  }
  all_.all().write("-", fmt::format("load   g{} goes on from {}", of->which.value,
                                    found ? fmt::format("step {}", what.step) : "nothing"));
  all_.all().tell(&observer::loaded, what);
  all_.go_on_from(of->which, what.step);
}

} // namespace troupe::sim
