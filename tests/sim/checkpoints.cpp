#include "tests/sim/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe::sim {

namespace {

constexpr const char* everybodys_place = "/ckpt";
constexpr std::size_t slots_max = 8;
/// From the call to a snapshot that is whole.
constexpr duration copy_most = 30ms;

/// Other bytes for each snapshot.
ports::receipt receipt_of(const ckpt::persist_request& snapshot) {
  return {snapshot.bytes, static_cast<std::uint32_t>(snapshot.made_by.value * 1'000'003 +
                                                     snapshot.sequence * 101 + snapshot.rank)};
}

} // namespace

/// One thread of work: one thing after the other.
class sim_checkpoint_host final : public ckpt::checkpoint_host,
                                  public std::enable_shared_from_this<sim_checkpoint_host> {
 public:
  sim_checkpoint_host(checkpoints& of, host_ptr launcher)
      : all_(of), launcher_(std::move(launcher)) {}

  void watch(std::function<void(const ckpt::persist_request&)> on_request) override {
    on_request_ = std::move(on_request);
    for (const auto& snapshot : all_.memories_[node()].requests)
      on_request_(snapshot);
  }
  void watch_copies(std::function<void(const ckpt::snapshot_to_copy&)> on_request) override {
    on_copy_request_ = std::move(on_request);
    for (const auto& snapshot : all_.memories_[node()].to_copy)
      on_copy_request_(snapshot);
  }
  void look(std::function<void()> done) override { done(); }
  void write(const ckpt::persist_request& snapshot,
             std::function<void(result<ports::receipt>)> done) override {
    const auto& o = all_.options_;
    work(o.write_min, o.write_max,
         [this, snapshot, done = std::move(done)] { done(all_.put(node(), snapshot)); });
  }
  void commit(const ckpt::commit_order& order,
              std::function<void(result<std::uint64_t>)> done) override {
    work(1ms, 5ms, [this, order, done = std::move(done)] { done(all_.commit(node(), order)); });
  }
  void finalize(const ckpt::persist_request& snapshot, const result<void>& how) override {
    all_.finalize(node(), snapshot, how);
  }
  void request_newest() override {}
  void copy(const ckpt::snapshot_to_copy& snapshot,
            std::function<void(result<void>)> done) override {
    const auto takes = all_.world_.between(all_.options_.write_min, all_.options_.write_max);
    launcher_->call_in(takes, [me = shared_from_this(), snapshot, done = std::move(done)] {
      me->all_.copies_.give(me->launcher_, snapshot, done);
    });
  }
  void finalize_copy(const ckpt::snapshot_to_copy& snapshot, const result<void>& how) override {
    all_.finalize_copy(node(), snapshot, how);
  }

  void tell(const ckpt::snapshot_to_copy& snapshot) {
    launcher_->call([me = shared_from_this(), snapshot] {
      if (me->on_copy_request_)
        me->on_copy_request_(snapshot);
    });
  }
  void tell(const ckpt::persist_request& snapshot) {
    launcher_->call([me = shared_from_this(), snapshot] {
      if (me->on_request_)
        me->on_request_(snapshot);
    });
  }
  void forget_everybody() {
    on_request_ = nullptr;
    on_copy_request_ = nullptr;
    queue_.clear();
  }

 private:
  struct job {
    duration takes;
    std::function<void()> what;
  };
  const std::string& node() const { return launcher_->name(); }

  void work(duration least, duration most, std::function<void()> what) {
    queue_.push_back({all_.world_.between(least, most), std::move(what)});
    if (queue_.size() == 1)
      begin();
  }
  void begin() {
    launcher_->call_in(queue_.front().takes, [me = shared_from_this()] { me->end(); });
  }
  void end() {
    if (queue_.empty())
      return;
    const auto first = std::move(queue_.front());
    first.what();
    queue_.pop_front();
    if (!queue_.empty())
      begin();
  }

  checkpoints& all_;
  const host_ptr launcher_;
  std::function<void(const ckpt::persist_request&)> on_request_;
  std::function<void(const ckpt::snapshot_to_copy&)> on_copy_request_;
  std::deque<job> queue_;
};

std::shared_ptr<ckpt::checkpoint_host> checkpoints::host_of(const host_ptr& launcher) {
  const auto made = std::make_shared<sim_checkpoint_host>(*this, launcher);
  hosts_[launcher->name()] = made;
  copies_.launcher_started(launcher->name());
  return made;
}

void checkpoints::launcher_ends(const host_ptr& launcher) {
  if (const auto h = hosts_[launcher->name()].lock())
    h->forget_everybody();
}

void checkpoints::launcher_ended(const host_ptr& launcher, ending_kind how) {
  hosts_.erase(launcher->name());
  copies_.launcher_ended(launcher->name(), how != ending_kind::crashed);
  if (how == ending_kind::crashed)
    return;
  memories_.erase(launcher->name());
  world_.tell(&observer::snapshots_lost, launcher->name());
}

// ---- Training ----

void checkpoints::save_next() {
  std::uint64_t newest = 0;
  for (const auto& [where, d] : directories_)
    for (const auto& [step, s] : d.steps)
      if (s.complete)
        newest = std::max(newest, step);
  const auto ranks = training_.living_ranks();
  if (ranks.empty())
    return;
  const auto which = training_.all().at(ranks.front() - 1).which;
  if (std::exchange(last_saved_by_, which) != which)
    last_tried_ = newest;
  save(++last_tried_);
}

std::vector<std::uint64_t> checkpoints::whole_world() const {
  const auto ranks = training_.living_ranks();
  if (!training_.training() || ranks.empty())
    return {};
  global_rank last = 0;
  for (const auto number : ranks)
    last = std::max(last, training_.all().at(number - 1).rank);
  return ranks.size() == last + 1 ? ranks : std::vector<std::uint64_t>{};
}

void checkpoints::save(std::uint64_t step, std::optional<global_rank> without) {
  const auto ranks = whole_world();
  for (const auto number : ranks) {
    if (training_.all().at(number - 1).rank == without)
      continue;
    world_.events.in(world_.between(1ms, copy_most),
                     [this, number, step, size = static_cast<std::uint32_t>(ranks.size())] {
                       if (const auto& p = training_.all().at(number - 1); !p.ended)
                         request_persist(p, step, size);
                     });
  }
  if (options_.copied)
    copy(step, 1);
}

void checkpoints::copy(std::uint64_t step, std::uint32_t parity) {
  const auto ranks = whole_world();
  for (const auto number : ranks)
    world_.events.in(world_.between(1ms, copy_most), [this, number, step, ranks, parity] {
      if (const auto& p = training_.all().at(number - 1); !p.ended)
        request_copies(p, step, ranks, parity);
    });
}

ckpt::snapshot_here checkpoints::snapshot_of(const process_record& p, std::uint64_t step,
                                             std::uint32_t world_size) {
  ckpt::snapshot_here snapshot;
  snapshot.local = p.local;
  snapshot.sequence = ++memories_[p.node].saved[p.local];
  snapshot.slot = snapshot.sequence % slots_max;
  snapshot.step = step;
  snapshot.made_by = p.which;
  snapshot.rank = p.rank;
  snapshot.world_size = world_size;
  snapshot.bytes = 1'000 + p.rank;
  return snapshot;
}

void checkpoints::request_persist(const process_record& p, std::uint64_t step,
                                  std::uint32_t world_size) {
  auto& m = memories_[p.node];
  const auto held = std::count_if(m.requests.begin(), m.requests.end(),
                                  [&p](const auto& i) { return i.local == p.local; });
  if (static_cast<std::size_t>(held) >= slots_max)
    return; // its process is told so
  ckpt::persist_request snapshot;
  static_cast<ckpt::snapshot_here&>(snapshot) = snapshot_of(p, step, world_size);
  snapshot.to.shard = p.rank;
  snapshot.to.shards = world_size;
  snapshot.to.place = everybodys_place;
  snapshot.to.directory = std::to_string(step);
  snapshot.to.file = fmt::format("rank_{}.pt", p.rank);
  snapshot.to.save_within = options_.save_within;
  m.requests.push_back(snapshot);
  world_.write(
      p.node, fmt::format("ckpt   g{} rank {} wants step {} written", p.which.value, p.rank, step));
  world_.tell(&observer::persist_requested, p.node, snapshot);
  if (const auto h = hosts_[p.node].lock())
    h->tell(snapshot);
}

void checkpoints::request_copies(const process_record& p, std::uint64_t step,
                                 const std::vector<std::uint64_t>& all, std::uint32_t parity) {
  ckpt::snapshot_to_copy snapshot;
  static_cast<ckpt::snapshot_here&>(snapshot) =
      snapshot_of(p, step, static_cast<std::uint32_t>(all.size()));
  snapshot.by.parity = parity;
  snapshot.within = options_.save_within;
  for (const auto number : all) {
    const auto& other = training_.all().at(number - 1);
    if (other.local != p.local)
      continue;
    if (other.rank == p.rank)
      snapshot.by.me = static_cast<std::uint32_t>(snapshot.by.members.size());
    snapshot.by.members.push_back({other.rank, other.node});
  }
  if (snapshot.by.members.size() < 2)
    return;
  auto& m = memories_[p.node];
  if (m.to_copy.size() >= slots_max)
    return;
  m.to_copy.push_back(snapshot);
  world_.write(p.node, fmt::format("ckpt   g{} rank {} wants step {} held by others", p.which.value,
                                   p.rank, step));
  if (const auto h = hosts_[p.node].lock())
    h->tell(snapshot);
}

void checkpoints::say_newest_in_memory() const {
  std::map<std::pair<generation, std::uint64_t>, std::map<global_rank, std::string>> steps;
  std::map<std::pair<generation, std::uint64_t>, std::uint32_t> worlds;
  for (const auto& [node, m] : memories_)
    for (const auto& snapshot : m.held) {
      auto& ranks = steps[{snapshot.made_by, snapshot.step}];
      worlds[{snapshot.made_by, snapshot.step}] = snapshot.world_size;
      ranks[snapshot.rank] = "its own memory";
      for (const auto& other : snapshot.by.members)
        if (copies_.can_be_rebuilt(snapshot))
          ranks.emplace(other.rank, "pieces that others hold");
    }
  for (auto at = steps.rbegin(); at != steps.rend(); ++at)
    if (at->second.size() == worlds[at->first]) {
      for (const auto& [rank, from] : at->second)
        world_.write("-", fmt::format("ckpt   step {} of rank {} comes from {}", at->first.second,
                                      rank, from));
      return;
    }
  world_.write("-", "ckpt   no step is in memory");
}

// ---- What a saver does ----

result<ports::receipt> checkpoints::put(const std::string& node,
                                        const ckpt::persist_request& snapshot) {
  if (options_.fails > 0 && world_.random.chance(options_.fails)) {
    world_.write(
        node, fmt::format("ckpt   step {} {} cannot be written", snapshot.step, snapshot.to.file));
    return failure(errc::unavailable, "no space left on device");
  }
  auto& d = directory_of(node);
  auto& s = d.steps[snapshot.step];
  const auto known = s.files.find(snapshot.to.file);
  if (s.complete && s.sequence == d.last_sequence)
    return known == s.files.end() ? receipt_of(snapshot) : known->second.what; // it is there
  if (known != s.files.end() && snapshot.made_by < known->second.made_by)
    return failure(errc::refused, "a newer generation has written it");
  // The first shard of a step that is saved again.
  s.complete.reset();
  s.files[snapshot.to.file] = {receipt_of(snapshot), snapshot.made_by};
  world_.write(node, fmt::format("ckpt   step {} {} is written", snapshot.step, snapshot.to.file));
  return receipt_of(snapshot);
}

result<std::uint64_t> checkpoints::commit(const std::string& node,
                                          const ckpt::commit_order& order) {
  auto& d = directory_of(node);
  auto& s = d.steps[order.says.step];
  if (s.complete)
    return s.sequence;
  bool whole = true;
  for (const auto& shard : order.says.shards) {
    const auto found = s.files.find(shard.name);
    if (!options_.shared && shard.node != node)
      continue;
    whole = whole && found != s.files.end() && found->second.what == shard.file;
  }
  // Another attempt at the same step may have begun meanwhile; the real one looks as well.
  if (!whole)
    return failure(errc::invalid, "its shards are not those that were reported");
  s.sequence = order.says.sequence != 0 ? order.says.sequence : d.last_sequence + 1;
  d.last_sequence = std::max(d.last_sequence, s.sequence);
  s.complete = order.says.made_by;
  world_.write(node, fmt::format("ckpt   step {} is complete as {}", order.says.step, s.sequence));
  world_.tell(&observer::step_completed, node, order);
  return s.sequence;
}

void checkpoints::finalize(const std::string& node, const ckpt::persist_request& snapshot,
                           const result<void>& how) {
  auto& requests = memories_[node].requests;
  requests.erase(std::remove_if(requests.begin(), requests.end(),
                                [&snapshot](const auto& i) {
                                  return i.local == snapshot.local &&
                                         i.sequence == snapshot.sequence;
                                }),
                 requests.end());
  world_.write(node,
               fmt::format("ckpt   g{} rank {} step {} finalized: {}", snapshot.made_by.value,
                           snapshot.rank, snapshot.step, how ? "complete" : how.error().what));
  world_.tell(&observer::persist_finalized, node, snapshot, how.has_value());
}

void checkpoints::finalize_copy(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                                const result<void>& how) {
  auto& m = memories_[node];
  const auto same = [&snapshot](const auto& i) {
    return i.local == snapshot.local && i.sequence == snapshot.sequence;
  };
  m.to_copy.erase(std::remove_if(m.to_copy.begin(), m.to_copy.end(), same), m.to_copy.end());
  if (how) {
    m.held.push_back(snapshot);
    if (m.held.size() > slots_max)
      m.held.erase(m.held.begin());
  }
  world_.write(node, fmt::format("ckpt   g{} rank {} step {} finalized: {}", snapshot.made_by.value,
                                 snapshot.rank, snapshot.step,
                                 how ? "held by others" : how.error().what));
}

} // namespace troupe::sim
