#include "tests/sim/checkpoints.hpp"

#include "ckpt/catalog/step_names.hpp"
#include "runtime/base/generations.hpp"
#include "tests/sim/checkpoint_host.hpp"
#include "tests/sim/replication_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

constexpr const char* place_of_all = "/ckpt";
/// From the call to a snapshot that is whole.
constexpr duration copy_most = 30ms;
constexpr std::size_t snapshots_kept = 2;

} // namespace

checkpoints::checkpoints(world& of, trainers& training, checkpoint_options options)
    : world_(of), training_(training), options_(options) {}

checkpoints::~checkpoints() {
  for (const auto& job : other_jobs_)
    job->end();
}

/// Weights, and checkpoints that another tool has written, one of them where a step would go.
const std::map<std::string, std::string>& checkpoints::files_of_people() {
  static const std::map<std::string, std::string> all{{"best/model.pt", "weights"},
                                                      {"5000/rank_0.pt", "of another tool"},
                                                      {"7/rank_0.pt", "of another tool"},
                                                      {"step_5_rank_0.pt", "of another tool"},
                                                      {"notes.txt", "do not remove"}};
  return all;
}

sim_place& checkpoints::place_of(const std::string& node) {
  const auto [at, made] = places_.try_emplace(options_.shared ? "" : node);
  auto& place = at->second;
  if (made) {
    place.write_min = options_.write_min;
    place.write_max = options_.write_max;
    place.fails = options_.fails;
    if (options_.shared_with_people)
      for (const auto& [name, content] : files_of_people())
        place.content.files[name] = content;
    if (options_.tracked_by_people)
      place.content.files["dlrover_latest.txt"] = "5000";
  }
  return place;
}

std::uint64_t checkpoints::troubles() const {
  std::uint64_t all = 0;
  for (const auto& [name, place] : places_)
    all += place.disturbed + place.troubles;
  return all;
}

bool checkpoints::any_is_ill() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const auto& one) { return one.second.is_ill(); });
}

void checkpoints::heal() {
  options_.fails = 0;
  for (auto& [name, place] : places_) {
    place.slow = place.full = place.broken = false;
    place.fails = 0;
  }
}

void checkpoints::replace_disk(const std::string& node) {
  if (options_.shared)
    return;
  auto& place = place_of(node);
  place.content.files.clear();
  place.refuses = false;
  ++place.disturbed;
  world_.tell(&observer::disk_replaced, node);
}

/// Not what people have written, nor what has no checksum.
void checkpoints::decay(const std::string& node) {
  auto& place = place_of(node);
  std::vector<std::string> of_steps;
  for (const auto& [name, content] : place.content.files) {
    const bool of_people = options_.shared_with_people && files_of_people().count(name) != 0;
    const bool sealed = name.find("rank_") != name.npos || name.find("manifest") != name.npos ||
                        ckpt::step_of_marker(name);
    if (!of_people && sealed && !content.empty())
      of_steps.push_back(name);
  }
  if (of_steps.empty())
    return;
  const auto& name = of_steps[world_.random.below(of_steps.size())];
  auto& content = place.content.files[name];
  content[world_.random.below(content.size())] ^= 1;
  ++place.disturbed;
  place.refuses = true;
  world_.write(node, fmt::format("ckpt   '{}' decays", name));
  world_.tell(&observer::place_decayed, node);
}

/// By its own ranks' agreement it numbers its saves like any; its master began just now.
void checkpoints::save_by_another_job(const std::string& node) {
  const auto began =
      std::chrono::milliseconds(1'800'000'000'000) +
      std::chrono::duration_cast<std::chrono::milliseconds>(world_.events.now().time_since_epoch());
  ckpt::slot_snapshot what;
  what.step = 1'000 + world_.random.below(3);
  what.generation = next_generation({}, term{static_cast<std::uint64_t>(began.count())}).value;
  what.save = 1;
  what.world_size = 1;
  ckpt::persist_request snapshot;
  snapshot.step = what.step;
  snapshot.made_by = generation{what.generation};
  snapshot.save = 1;
  snapshot.world_size = 1;
  snapshot.to = {place_of_all,  std::to_string(what.step), "rank_0.pt", ckpt::framework::ddp, 0, 1,
                 options_.keep, options_.save_within};
  const auto later = [this](duration d, std::function<void()> then) {
    world_.events.in(d, std::move(then));
  };
  place_of(node).refuses = true;
  other_jobs_.push_back(fiber::start(later, [this, node, what, snapshot] {
    place_use use(world_, place_of(node));
    fiber::current()->pass(1ms);
    const std::string its_node = "another job's node";
    ckpt::place_writer writer(std::make_unique<sim_storage>(world_, place_of(node)), its_node);
    const auto content = content_of(what);
    const auto written = writer.write(snapshot, ports::bytes_of(content), ports::never_stops);
    if (!written) {
      use.done();
      return world_.write(node, "ckpt   another job: " + written.error().what);
    }
    ckpt::commit_order order;
    order.to = snapshot.to;
    order.says.step = what.step;
    order.says.made_by = snapshot.made_by;
    order.says.save = 1;
    order.says.world_size = 1;
    order.says.layout = ckpt::layout_of(snapshot.to.whose);
    order.says.shards = {{"rank_0.pt", *written, its_node}};
    const auto how = writer.commit(order);
    place_of(node).refuses = true; // also if the disk was replaced meanwhile
    world_.write(node, fmt::format("ckpt   another job: {}",
                                   how ? "its step is complete" : how.error().what));
    if (how)
      writer.retain({order.to, {order.says.id(), order.says.id()}});
    use.done();
  }));
}

void checkpoints::lose_power(const std::string& node) {
  place_of(node).lose_cache(world_.events.now());
}

std::shared_ptr<ckpt::checkpoint_host> checkpoints::host_of(const host_ptr& launcher) {
  const auto made = std::make_shared<sim_checkpoint_host>(*this, launcher);
  hosts_[launcher->name()] = made;
  // What its predecessor read it reads no more.
  for (auto& [local, table] : memories_[launcher->name()].tables)
    ckpt::slots(*table, snapshots_kept).readers_died();
  return made;
}

std::shared_ptr<ckpt::replication_host> checkpoints::copier_of(const host_ptr& launcher) {
  const auto made = std::make_shared<sim_replication_host>(*this, launcher);
  copiers_[launcher->name()] = made;
  copies_.launcher_started(launcher);
  return made;
}

void checkpoints::launcher_ends(const host_ptr& launcher) {
  if (const auto h = hosts_[launcher->name()].lock())
    h->end();
  if (const auto c = copiers_[launcher->name()].lock())
    c->end();
}

void checkpoints::launcher_ended(const host_ptr& launcher, ending_kind how) {
  hosts_.erase(launcher->name());
  copiers_.erase(launcher->name());
  copies_.launcher_ended(launcher, how);
  if (how == ending_kind::crashed)
    return;
  if (how == ending_kind::power_cut && !options_.shared)
    lose_power(launcher->name());
  memories_.erase(launcher->name());
  world_.tell(&observer::snapshots_lost, launcher->name());
}

// ---- Memory ----

ckpt::slots checkpoints::memory_of(const std::string& node, local_rank local) {
  auto& table = memories_[node].tables[local];
  if (!table) {
    table = std::make_unique<ckpt::slot_table>();
    ckpt::slots(*table, snapshots_kept).format();
  }
  return {*table, snapshots_kept};
}

bool checkpoints::put(const std::string& node, local_rank local, const ckpt::slot_snapshot& what) {
  auto words = memory_of(node, local);
  const auto slot = words.begin();
  if (slot)
    words.finish(*slot, what);
  return slot.has_value();
}

/// Not of the same length at all ranks.
std::string checkpoints::content_of(const ckpt::slot_snapshot& what) const {
  const auto rank = options_.replicated ? 0 : what.rank;
  return fmt::format("generation {} save {} step {} rank {}{:.>{}}", what.generation, what.save,
                     what.step, rank, "", rank / 2 % 5);
}

// ---- Training ----

void checkpoints::go_on_from(generation which, std::optional<std::uint64_t> loaded) {
  auto step = loaded.value_or(0);
  // Its user turns away from what it has learnt last.
  if (world_.random.chance(options_.goes_back))
    step -= std::min(step, 1 + world_.random.below(6));
  at_step_[which] = step;
  if (loaded)
    resumed_[which] = step;
}

std::uint64_t checkpoints::next_step(generation which) {
  return at_step_[which] += 1 + world_.random.below(2);
}

void checkpoints::save_next() {
  for (const auto which : training_.together())
    if (at_step_.count(which) != 0)
      save_in(which, next_step(which), std::nullopt);
}

void checkpoints::save_last(generation which) {
  if (at_step_.count(which) == 0 || training_.ranks_of(which).empty())
    return;
  const auto now = begin_attempt(which, next_step(which));
  for (const auto process : now->ranks)
    keep(*now, process);
  agree(*now, true);
}

std::optional<generation> checkpoints::newest_that_trains() const {
  const auto all = training_.together();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

void checkpoints::save(std::uint64_t step, std::optional<global_rank> without) {
  const auto which = newest_that_trains();
  if (!which)
    return;
  at_step_[*which] = std::max(at_step_[*which], step);
  save_in(*which, step, without);
}

void checkpoints::save_in(generation which, std::uint64_t step,
                          std::optional<global_rank> without) {
  copy_state(begin_attempt(which, step), without);
}

/// Each rank at some time, and then all hear how it went.
void checkpoints::copy_state(const std::shared_ptr<attempt>& now,
                             std::optional<global_rank> without) {
  for (const auto process : now->ranks)
    if (training_.all().at(process - 1).rank != without)
      world_.events.in(world_.between(1ms, copy_most),
                       [this, now, process] { keep(*now, process); });
  world_.events.in(copy_most + 1ms, [this, now, without] {
    now->agreed = now->agreed || without;
    agree(*now, false);
  });
}

std::shared_ptr<checkpoints::attempt> checkpoints::begin_attempt(generation which,
                                                                 std::uint64_t step) {
  auto made = std::make_shared<attempt>();
  made->ranks = training_.ranks_of(which);
  if (made->ranks.empty())
    return made;
  made->which = which;
  made->number = ++saves_[which] << ckpt::place_bits;
  made->step = step;
  if (!options_.replicated)
    made->copies = options_.copies;
  return made;
}

/// The process copies its state.
void checkpoints::keep(attempt& a, std::uint64_t process) {
  const auto& p = training_.all().at(process - 1);
  const auto slot = p.ended ? std::nullopt : memory_of(p.node, p.local).begin();
  if (!slot) {
    a.agreed = false; // all ranks are told so
    return;
  }
  ckpt::slot_snapshot what;
  what.step = a.step;
  what.generation = a.which.value;
  what.save = a.number;
  what.rank = p.rank;
  what.world_size = static_cast<std::uint32_t>(a.ranks.size());
  what.bytes = content_of(what).size();
  ckpt::slot_destination to;
  const auto text = [](auto& into, const std::string& from) {
    std::copy(from.begin(), from.end(), into.begin());
  };
  text(to.place, place_of_all);
  text(to.directory, options_.in_place ? "." : std::to_string(a.step));
  text(to.file, options_.in_place ? fmt::format("step_{}_rank_{}.pt", a.step, p.rank)
                                  : fmt::format("rank_{}.pt", p.rank));
  to.shard = options_.replicated ? 0 : p.rank;
  to.shards = options_.replicated ? 1 : what.world_size;
  if (const auto from = resumed_.find(a.which); from != resumed_.end())
    to.resumed = 1 + from->second;
  memory_of(p.node, p.local).finish(*slot, what, to);
  a.slots[process] = *slot;
}

/// All have it: it is what they go back to, those that have a shard want it written, and if none of
/// the last copies is on its way all want copies of it.
void checkpoints::agree(const attempt& a, bool at_once) {
  for (const auto process : a.ranks)
    if (training_.all().at(process - 1).ended)
      return;
  const bool next_copies = agree_on_copies(a.which);
  if (!a.agreed)
    return;
  for (const auto& [process, slot] : a.slots) {
    const auto& p = training_.all().at(process - 1);
    auto words = memory_of(p.node, p.local);
    const auto sequence = words.word(slot).sequence;
    words.set_rollback_point(sequence);
    if (!a.to_disk || (options_.replicated && p.rank != 0))
      continue;
    const auto wants = [this, process = process, slot = slot, sequence] {
      request_persist(process, slot, sequence);
    };
    at_once ? wants() : world_.events.in(world_.between({}, agreement_most), wants);
  }
  if (next_copies && a.copies.parity != 0 && a.slots.size() == a.ranks.size())
    want_copies(a.which, {{a.which, a.number}, a.step}, a.copies, a.slots);
}

void checkpoints::request_persist(std::uint64_t process, std::size_t slot, std::uint64_t sequence) {
  const auto& p = training_.all().at(process - 1);
  if (p.ended || memories_.count(p.node) == 0)
    return;
  auto words = memory_of(p.node, p.local);
  if (words.word(slot).sequence != sequence || !words.request_persist(slot))
    return;
  const auto snapshot = request_in(p.node, p.local, slot);
  world_.write(p.node, fmt::format("ckpt   g{} rank {} wants step {} written", p.which.value,
                                   p.rank, snapshot.step));
  world_.tell(&observer::persist_requested, p.node, snapshot);
  if (const auto h = hosts_[p.node].lock())
    h->tell(snapshot);
}

ckpt::persist_request checkpoints::request_in(const std::string& node, local_rank local,
                                              std::size_t slot) {
  const auto words = memory_of(node, local);
  const auto& says = words.snapshot(slot);
  const auto& to = words.destination(slot);
  const auto text = [](const auto& from) {
    return std::string(from.begin(), std::find(from.begin(), from.end(), '\0'));
  };
  ckpt::persist_request snapshot;
  static_cast<ckpt::snapshot_here&>(snapshot) = {
      local,     slot,      words.word(slot).sequence, says.step, generation{says.generation},
      says.save, says.rank, says.world_size,           says.bytes};
  snapshot.to = {text(to.place), text(to.directory), text(to.file), ckpt::framework::ddp,
                 to.shard,       to.shards,          options_.keep, options_.save_within};
  if (to.resumed != 0)
    snapshot.to.resumed_from = {to.resumed - 1, to.resumed_after};
  return snapshot;
}

std::vector<ckpt::persist_request> checkpoints::requests_of(const std::string& node) {
  std::vector<ckpt::persist_request> all;
  for (const auto& [local, table] : memories_[node].tables) {
    const auto words = memory_of(node, local);
    for (const auto slot : words.oldest_first())
      if (const auto word = words.word(slot);
          word.state == ckpt::slot_state::ready && word.persist_requested)
        all.push_back(request_in(node, local, slot));
  }
  return all;
}

void checkpoints::finalize(const std::string& node, const ckpt::persist_request& snapshot,
                           const result<void>& how) {
  auto words = memory_of(node, snapshot.local);
  const auto word = words.word(snapshot.slot);
  if (word.sequence != snapshot.sequence || !word.persist_requested)
    return;
  words.finalize(snapshot.slot, snapshot.sequence, {how.has_value(), how ? "" : how.error().what});
  world_.write(node,
               fmt::format("ckpt   g{} rank {} step {} finalized: {}", snapshot.made_by.value,
                           snapshot.rank, snapshot.step, how ? "complete" : how.error().what));
  world_.tell(&observer::persist_finalized, node, snapshot, how.has_value());
}

} // namespace troupe::sim
