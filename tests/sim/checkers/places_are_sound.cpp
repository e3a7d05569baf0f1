#include "actors/step_key.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/ports/testing/memory_storage.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace troupe::sim::checkers {

namespace {

constexpr const char* tracker_name = "dlrover_latest.txt";

/// The order of saves, told here once more: the product's is what is looked at.
struct by_save {
  bool operator()(const ckpt::save_id& a, const ckpt::save_id& b) const {
    return std::tie(a.made_by.value, a.number) < std::tie(b.made_by.value, b.number);
  }
};
constexpr by_save is_before{};

struct known_step {
  ckpt::save_id id;
  std::uint64_t step = 0;
};

/// What must be so at a place if nothing has failed there since it was noted.
struct expected {
  std::optional<known_step> completed; ///< the newest of them
  /// The newest that training has turned back before and may have begun again: a node whose
  /// trackers were slow says later that it is complete.
  ckpt::save_id turned_from;
  /// What is left of earlier saves had to go by an order of that time.
  ckpt::save_id open_from;
  generation ordered_by;
  instant ordered_at;
  bool changed = false;           ///< since it was looked at
  bool disturbed_at_work = false; ///< what has begun before is not noted when it ends
  std::uint64_t disturbed = 0;
  bool replaced = false; ///< the disk, by an empty one
  /// When a step's marker was written, and how often the place was disturbed when a file was.
  std::map<std::uint64_t, instant> marked;
  /// When a removal of a complete step began: its manifest goes first.
  std::map<std::uint64_t, instant> going;
  instant committed_at; ///< the last order that came with a commit
  std::map<std::string, std::uint64_t> written;
};

class places_are_sound_checker final : public observer {
 public:
  places_are_sound_checker(world& w, checkpoints& of) : world_(w), all_(of) {}

  void file_changed(const sim_place& at, const std::string& name,
                    const std::optional<std::string>& was) override {
    const auto now = at.content.files.find(name);
    const bool there = now != at.content.files.end();
    if (of_people(name) && was == content_of_people(name) && (!there || now->second != *was))
      blame(fmt::format("'{}' is other people's, and is {} now", name, there ? "another" : "gone"));
    auto& e = expected_[&at];
    if (!there) {
      e.written.erase(name);
      if (const auto step = was ? step_of_manifest(at, name) : std::nullopt)
        e.going[*step] = world_.events.now();
      return;
    }
    e.written[name] = at.disturbed;
    // A shard that came late is claimed anew, and a removal that is under way may take that claim
    // along without having seen it.
    const auto file = name.substr(name.rfind('/') + 1);
    if (name.rfind(".troupe/in_place/", 0) == 0 && at.content.files.count(file) != 0)
      e.written.erase(file);
    if (const auto step = ckpt::step_of_marker(name)) {
      e.marked[*step] = world_.events.now();
      e.going.erase(*step);
    }
  }

  void step_completed(const std::string& node, const ckpt::commit_order& order) override {
    auto& e = of(all_.place_of(node));
    if (e.disturbed_at_work)
      return;
    e.changed = true;
    if (order.says.id() == e.turned_from)
      return;
    if (!e.completed || is_before(e.completed->id, order.says.id()))
      e.completed = known_step{order.says.id(), order.says.step};
  }

  /// A saver that runs on remembers what was on the disk before.
  void disk_replaced(const std::string& node) override {
    expected_[&all_.place_of(node)].replaced = true;
  }

  void delivered(const std::string& at, const std::string&, const messages::any_msg& m) override {
    if (!m.is<messages::StepFinalized>())
      return;
    const auto verdict = m.as<messages::StepFinalized>();
    auto r = verdict.read();
    const auto which = actors::key_of(r->getKey());
    verdicts_[{at, which.step, which.id().made_by.value, which.id().number}] = {
        {generation{r->getOpenFromGeneration()}, r->getOpenFrom()}, world_.events.now()};
  }

  void persist_requested(const std::string& node, const ckpt::persist_request& snapshot) override {
    open_[node].insert({{snapshot.local, snapshot.sequence}, snapshot.id()});
    auto& e = of(all_.place_of(node));
    auto& newest = e.completed;
    if (newest && newest->step == snapshot.step && newest->id.made_by < snapshot.made_by &&
        snapshot.to.resumed_from && snapshot.to.resumed_from->step < snapshot.step) {
      e.turned_from = newest->id;
      newest.reset();
    }
  }
  void snapshots_lost(const std::string& node) override { open_.erase(node); }

  /// With that an order to remove what need not be kept is given, but for saves that this node
  /// knows to be open.
  void persist_finalized(const std::string& node, const ckpt::persist_request& snapshot,
                         bool complete) override {
    open_[node].erase({snapshot.local, snapshot.sequence});
    const auto verdict =
        verdicts_.find({node, snapshot.step, snapshot.made_by.value, snapshot.save});
    // Without a word of the master in a long time a snapshot is let go, and nothing is removed.
    if (verdict == verdicts_.end() || world_.events.now() - verdict->second.second > 1s)
      return;
    auto& place = all_.place_of(node);
    auto& e = of(place);
    auto open_from = verdict->second.first;
    for (const auto& [which, id] : open_[node])
      if (!(id == snapshot.id()) && is_before(id, open_from))
        open_from = id;
    if (complete)
      e.committed_at = world_.events.now();
    if (is_before(e.open_from, open_from)) {
      e.open_from = open_from;
      e.ordered_by = snapshot.made_by;
      e.ordered_at = world_.events.now();
      e.changed = true;
    }
    if (place.at_work == 0)
      place_rests(&place);
  }

  void place_rests(sim_place* where) override {
    auto& at = *where;
    auto& e = of(at);
    e.disturbed_at_work = false;
    if (!std::exchange(e.changed, false))
      return;
    look_at_completed(at, e);
    look_at_what_is_left(at, e);
    look_at_files(at, e);
  }

 private:
  using told_to = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>;

  static std::optional<std::uint64_t> step_of_manifest(const sim_place& at,
                                                       const std::string& name) {
    for (const auto& [file, content] : at.content.files)
      if (const auto step = ckpt::step_of_marker(file))
        if (const auto marker = ckpt::marker_in(content))
          if (ckpt::manifest_of_step(*step, marker->directory) == name)
            return step;
    return std::nullopt;
  }

  bool of_people(const std::string& name) const {
    if (!all_.options().shared_with_people)
      return false;
    return checkpoints::files_of_people().count(name) != 0 ||
           (name == tracker_name && all_.options().tracked_by_people);
  }

  static std::string content_of_people(const std::string& name) {
    return name == tracker_name ? "5000" : checkpoints::files_of_people().at(name);
  }

  /// What was expected is not after something has failed.
  expected& of(const sim_place& place) {
    auto& e = expected_[&place];
    if (e.disturbed != place.disturbed) {
      e.disturbed = place.disturbed;
      e.disturbed_at_work = place.at_work > 0;
      e.completed.reset();
      e.open_from = {};
    }
    return e;
  }

  static std::optional<ckpt::save_id> complete_as(sim_place& at, std::uint64_t step) {
    ports::testing::memory_storage storage(at.content);
    const auto seen = ckpt::step_catalog::open_one(storage, step);
    const auto* found = seen ? seen->find(step) : nullptr;
    return found != nullptr && found->is_complete() ? std::optional(found->says.id())
                                                    : std::nullopt;
  }

  static ckpt::line line_at(sim_place& at, generation by) {
    ports::testing::memory_storage storage(at.content);
    return ckpt::line_of(storage, term_of(by)).value_or(ckpt::line{term_of(by), {}});
  }

  static bool any_complete_from(sim_place& at, const ckpt::save_id& least) {
    for (const auto& [name, content] : at.content.files)
      if (const auto step = ckpt::step_of_marker(name))
        if (const auto id = complete_as(at, *step); id && !is_before(*id, least))
          return true;
    return false;
  }

  void look_at_completed(sim_place& at, const expected& e) {
    if (!e.completed)
      return;
    const auto& [id, step] = *e.completed;
    const auto is = complete_as(at, step);
    if ((!is || is_before(*is, id)) && !any_complete_from(at, id))
      return blame(fmt::format("step {} of save {} of generation {} was completed, and neither it "
                               "nor a newer one is",
                               step, id.number, id.made_by.value));
    if (all_.options().shared_with_people && all_.options().tracked_by_people)
      return;
    const auto named = at.content.files.find(tracker_name);
    if (named == at.content.files.end())
      return blame(fmt::format("no tracker names step {}", step));
    const auto by = complete_as(at, std::stoull(named->second));
    if (!by || is_before(*by, id))
      blame(fmt::format("the tracker names step {}, which is {}, after step {} of save {} of "
                        "generation {} was completed",
                        named->second, by ? "older" : "not complete", step, id.number,
                        id.made_by.value));
  }

  void look_at_what_is_left(sim_place& at, const expected& e) {
    if (e.replaced)
      return;
    for (const auto& [name, content] : at.content.files) {
      const auto step = ckpt::step_of_marker(name);
      const auto marked = step ? e.marked.find(*step) : e.marked.end();
      if (marked == e.marked.end() || marked->second >= e.ordered_at)
        continue;
      // What is left of a complete step, whose remover has died, goes with the next commit: until
      // then a saver that has seen it complete takes it for that.
      const auto going = e.going.find(*step);
      if (going != e.going.end() && going->second >= e.committed_at)
        continue;
      const auto marker = ckpt::marker_in(content);
      if (!marker || !is_before(marker->begun_by, e.open_from))
        continue;
      // What runs before it have left is not its own to remove, unless it stands upon them.
      if (!line_at(at, e.ordered_by).touches(marker->begun_by.made_by))
        continue;
      const auto manifest = ckpt::manifest_of_step(*step, marker->directory);
      if (at.content.files.count(manifest) == 0)
        blame(fmt::format("step {} of save {} of generation {} has ended without being complete, "
                          "and is still there",
                          *step, marker->begun_by.number, marker->begun_by.made_by.value));
    }
  }

  /// A step's directory has a marker that names it, and a file in the place itself a claim.
  void look_at_files(sim_place& at, const expected& e) {
    const auto& files = at.content.files;
    for (const auto& [name, content] : files) {
      if (name.rfind(".troupe/", 0) == 0 || name == tracker_name || of_people(name))
        continue;
      const auto slash = name.find('/');
      const auto number =
          slash == name.npos ? name.substr(5, name.find('_', 5) - 5) : name.substr(0, slash);
      const auto written = e.written.find(name);
      if (written == e.written.end() || written->second != at.disturbed)
        continue;
      // One that has seen the step on the disk before makes its manifest durable once more.
      if (e.replaced && name.substr(slash + 1) == ckpt::manifest_name)
        continue;
      if (const auto in_place = ckpt::step_of_manifest(name)) {
        if (!e.replaced && files.count(ckpt::marker_of(*in_place)) == 0)
          blame(fmt::format("'{}' is there, and no step has it", name));
        continue;
      }
      const auto step = std::stoull(number);
      if (files.count(ckpt::marker_of(step)) == 0 ||
          (slash == name.npos && files.count(ckpt::claim_of(step, name)) == 0))
        blame(fmt::format("'{}' is there, and no step has it", name));
    }
  }

  void blame(std::string what) { world_.blame("places_are_sound", std::move(what)); }

  world& world_;
  checkpoints& all_;
  std::map<const sim_place*, expected> expected_; ///< found by it, never in its order
  std::map<std::string, std::map<std::pair<local_rank, std::uint64_t>, ckpt::save_id>> open_;
  std::map<told_to, std::pair<ckpt::save_id, instant>> verdicts_; ///< and when each came
};

} // namespace

std::shared_ptr<observer> places_are_sound(world& w, checkpoints& of) {
  return std::make_shared<places_are_sound_checker>(w, of);
}

} // namespace troupe::sim::checkers
