#include "tests/sim/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe::sim {

namespace {

constexpr const char* everybodys_place = "/ckpt";
constexpr std::size_t slots_max = 8;
/// From the call to an image that is whole.
constexpr duration copy_most = 30ms;

/// Other bytes for each image.
ports::receipt receipt_of(const ckpt::persist_request& image) {
  return {image.bytes, static_cast<std::uint32_t>(image.made_by.value * 1'000'003 +
                                                  image.sequence * 101 + image.rank)};
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
    for (const auto& image : all_.memories_[node()].requests)
      on_request_(image);
  }
  void watch_copies(std::function<void(const ckpt::image_to_copy&)> on_request) override {
    on_copy_request_ = std::move(on_request);
    for (const auto& image : all_.memories_[node()].to_copy)
      on_copy_request_(image);
  }
  void look(std::function<void()> done) override { done(); }
  void write(const ckpt::persist_request& image,
             std::function<void(result<ports::receipt>)> done) override {
    const auto& o = all_.options_;
    work(o.write_min, o.write_max,
         [this, image, done = std::move(done)] { done(all_.put(node(), image)); });
  }
  void commit(const ckpt::commit_order& order,
              std::function<void(result<std::uint64_t>)> done) override {
    work(1ms, 5ms, [this, order, done = std::move(done)] { done(all_.commit(node(), order)); });
  }
  void finalize(const ckpt::persist_request& image, const result<void>& how) override {
    all_.finalize(node(), image, how);
  }
  void request_newest() override {}
  void copy(const ckpt::image_to_copy& image, std::function<void(result<void>)> done) override {
    const auto takes = all_.world_.between(all_.options_.write_min, all_.options_.write_max);
    launcher_->call_in(takes, [me = shared_from_this(), image, done = std::move(done)] {
      me->all_.copies_.give(me->launcher_, image, done);
    });
  }
  void finalize_copy(const ckpt::image_to_copy& image, const result<void>& how) override {
    all_.finalize_copy(node(), image, how);
  }

  void tell(const ckpt::image_to_copy& image) {
    launcher_->call([me = shared_from_this(), image] {
      if (me->on_copy_request_)
        me->on_copy_request_(image);
    });
  }
  void tell(const ckpt::persist_request& image) {
    launcher_->call([me = shared_from_this(), image] {
      if (me->on_request_)
        me->on_request_(image);
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
  std::function<void(const ckpt::image_to_copy&)> on_copy_request_;
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
  world_.tell(&observer::images_lost, launcher->name());
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

ckpt::image_here checkpoints::image_of(const process_record& p, std::uint64_t step,
                                       std::uint32_t world_size) {
  ckpt::image_here image;
  image.local = p.local;
  image.sequence = ++memories_[p.node].saved[p.local];
  image.slot = image.sequence % slots_max;
  image.step = step;
  image.made_by = p.which;
  image.rank = p.rank;
  image.world_size = world_size;
  image.bytes = 1'000 + p.rank;
  return image;
}

void checkpoints::request_persist(const process_record& p, std::uint64_t step,
                                  std::uint32_t world_size) {
  auto& m = memories_[p.node];
  const auto held = std::count_if(m.requests.begin(), m.requests.end(),
                                  [&p](const auto& i) { return i.local == p.local; });
  if (static_cast<std::size_t>(held) >= slots_max)
    return; // its process is told so
  ckpt::persist_request image;
  static_cast<ckpt::image_here&>(image) = image_of(p, step, world_size);
  image.to.shard = p.rank;
  image.to.shards = world_size;
  image.to.place = everybodys_place;
  image.to.directory = std::to_string(step);
  image.to.file = fmt::format("rank_{}.pt", p.rank);
  image.to.save_within = options_.save_within;
  m.requests.push_back(image);
  world_.write(
      p.node, fmt::format("ckpt   g{} rank {} wants step {} written", p.which.value, p.rank, step));
  world_.tell(&observer::persist_requested, p.node, image);
  if (const auto h = hosts_[p.node].lock())
    h->tell(image);
}

void checkpoints::request_copies(const process_record& p, std::uint64_t step,
                                 const std::vector<std::uint64_t>& all, std::uint32_t parity) {
  ckpt::image_to_copy image;
  static_cast<ckpt::image_here&>(image) = image_of(p, step, static_cast<std::uint32_t>(all.size()));
  image.by.parity = parity;
  image.within = options_.save_within;
  for (const auto number : all) {
    const auto& other = training_.all().at(number - 1);
    if (other.local != p.local)
      continue;
    if (other.rank == p.rank)
      image.by.me = static_cast<std::uint32_t>(image.by.members.size());
    image.by.members.push_back({other.rank, other.node});
  }
  if (image.by.members.size() < 2)
    return;
  auto& m = memories_[p.node];
  if (m.to_copy.size() >= slots_max)
    return;
  m.to_copy.push_back(image);
  world_.write(p.node, fmt::format("ckpt   g{} rank {} wants step {} held by others", p.which.value,
                                   p.rank, step));
  if (const auto h = hosts_[p.node].lock())
    h->tell(image);
}

void checkpoints::say_newest_in_memory() const {
  std::map<std::pair<generation, std::uint64_t>, std::map<global_rank, std::string>> steps;
  std::map<std::pair<generation, std::uint64_t>, std::uint32_t> worlds;
  for (const auto& [node, m] : memories_)
    for (const auto& image : m.held) {
      auto& ranks = steps[{image.made_by, image.step}];
      worlds[{image.made_by, image.step}] = image.world_size;
      ranks[image.rank] = "its own memory";
      for (const auto& other : image.by.members)
        if (copies_.can_be_rebuilt(image))
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
                                        const ckpt::persist_request& image) {
  if (options_.fails > 0 && world_.random.chance(options_.fails)) {
    world_.write(node,
                 fmt::format("ckpt   step {} {} cannot be written", image.step, image.to.file));
    return failure(errc::unavailable, "no space left on device");
  }
  auto& d = directory_of(node);
  auto& s = d.steps[image.step];
  const auto known = s.files.find(image.to.file);
  if (s.complete && s.sequence == d.last_sequence)
    return known == s.files.end() ? receipt_of(image) : known->second.what; // it is there
  if (known != s.files.end() && image.made_by < known->second.made_by)
    return failure(errc::refused, "a newer generation has written it");
  // The first shard of a step that is saved again.
  s.complete.reset();
  s.files[image.to.file] = {receipt_of(image), image.made_by};
  world_.write(node, fmt::format("ckpt   step {} {} is written", image.step, image.to.file));
  return receipt_of(image);
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

void checkpoints::finalize(const std::string& node, const ckpt::persist_request& image,
                           const result<void>& how) {
  auto& requests = memories_[node].requests;
  requests.erase(std::remove_if(requests.begin(), requests.end(),
                                [&image](const auto& i) {
                                  return i.local == image.local && i.sequence == image.sequence;
                                }),
                 requests.end());
  world_.write(node, fmt::format("ckpt   g{} rank {} step {} finalized: {}", image.made_by.value,
                                 image.rank, image.step, how ? "complete" : how.error().what));
  world_.tell(&observer::persist_finalized, node, image, how.has_value());
}

void checkpoints::finalize_copy(const std::string& node, const ckpt::image_to_copy& image,
                                const result<void>& how) {
  auto& m = memories_[node];
  const auto same = [&image](const auto& i) {
    return i.local == image.local && i.sequence == image.sequence;
  };
  m.to_copy.erase(std::remove_if(m.to_copy.begin(), m.to_copy.end(), same), m.to_copy.end());
  if (how) {
    m.held.push_back(image);
    if (m.held.size() > slots_max)
      m.held.erase(m.held.begin());
  }
  world_.write(node,
               fmt::format("ckpt   g{} rank {} step {} finalized: {}", image.made_by.value,
                           image.rank, image.step, how ? "held by others" : how.error().what));
}

} // namespace troupe::sim
