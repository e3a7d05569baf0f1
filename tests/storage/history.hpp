#pragma once

#include "ckpt/catalog/line.hpp"
#include "ckpt/catalog/place_writer.hpp"
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_names.hpp"
#include "ckpt/load/steps_seen.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/base/random.hpp"
#include "tests/storage/ground.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What a directory has been through, and what a run has to find in it: histories_test.cpp.
namespace troupe::ckpt::histories {

using ports::never_stops;
using troupe::testing::files;
using troupe::testing::ground;

inline constexpr std::uint32_t shards = 2;

/// A step as it was completed once.
struct completed_step {
  state_id id;
  std::string directory;
  files content; ///< by name below the place
  std::string manifest;

  std::string manifest_name() const { return manifest_of_step(id.step, directory); }
};

inline std::string crc_of(const std::string& text) {
  return std::to_string(libdeflate_crc32(0, text.data(), text.size()));
}

inline bool is_cache(const std::string& name) {
  return name.rfind(".troupe/", 0) == 0;
}

inline bool is_hidden(const std::string& name) {
  return name.front() == '.' || name.find("/.") != name.npos;
}

class history {
 public:
  history(ground& at, std::uint64_t seed) : at_(at), random_(seed) {}

  void make() {
    const auto events = 2 + random_.below(6);
    for (std::uint64_t n = 0; n < events; ++n) {
      const auto which = random_.below(14);
      const auto told = one_more(n < 2 ? random_.below(4) : which);
      told_ += "  " + told + "\n";
    }
  }

  void check() {
    {
      INFO(told_);
      look(); // as it is
    }
    go_on();
    INFO(told_);
    look();
  }

 private:
  // ---- Makers ----

  std::string one_more(std::uint64_t which) {
    switch (which) {
    case 0:
    case 1:
    case 2:
      return run(1 + random_.below(4), random_.below(3));
    case 3:
      return run(1 + random_.below(4), random_.below(3), true);
    case 4:
      return of_another_version();
    case 5:
      return put("checkpoint-{}/model.safetensors", "checkpoint-{}/trainer_state.json",
                 "a Trainer");
    case 6:
      return put("epoch=0-step={}.ckpt", "last.ckpt", "Lightning");
    case 7:
      return put("{}/rank_0.pt", "step_{}.pt", "torch.save");
    case 8:
      put("{}/rank_0.pt", "{}/rank_1.pt", "DLRover");
      at_.put("dlrover_latest.txt", std::to_string(last_number_));
      return fmt::format("DLRover's tracker names {}", last_number_);
    case 9:
      return copy_without_hidden_names();
    case 10:
      return copy_of_a_step();
    case 11:
      return half_deleted();
    case 12:
      return cut_short();
    default:
      at_.erase(".troupe");
      return "the cache is gone";
    }
  }

  /// A run of ours, which loads the newest, goes back, or begins anew.
  std::string run(std::uint64_t saves, std::uint64_t how, bool in_place = false) {
    const auto own = ++runs_;
    const run_at_start who{fmt::format("run {}", own), by_some_clock()};
    const auto storage = at_.open();
    const auto as = saves_as(*storage, who);
    REQUIRE_MESSAGE(as, as.error().what);
    origin from;
    auto step = random_.below(8) * 10;
    if (how != 0)
      if (const auto taken = newest()) {
        from.save = taken->save;
        step = taken->step - (how == 2 ? std::min<std::uint64_t>(taken->step, 20) : 0);
      }
    REQUIRE(begin_run(*storage, who, *as, from));
    std::string told = fmt::format("{} as term {} {} at {}:", who.run, term_of(*as).value,
                                   from.save ? "goes on" : "begins anew", step);
    const retention keep{random_.below(3), 0};
    for (std::uint64_t n = 1; n <= saves; ++n) {
      step += 10;
      const auto how_it_went = save(*as, n, step, keep, in_place);
      told += fmt::format(" {}{}", step, how_it_went ? "" : "!");
    }
    return told;
  }

  /// Not of one machine.
  generation by_some_clock() {
    return with_term(generation{1 + random_.below(5)}, term{1'000 + random_.below(1'000)});
  }

  result<void> save(generation as, std::uint64_t number, std::uint64_t step, retention keep,
                    bool in_place) {
    place_writer writer(at_.open(), "node");
    completed_step made;
    made.id = {{as, number}, step};
    made.directory = in_place ? "." : std::to_string(step);
    commit_order order;
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      persist_request w;
      w.step = step;
      w.made_by = as;
      w.save = number;
      w.rank = shard;
      w.world_size = shards;
      const auto file =
          in_place ? fmt::format("step-{}.{}.pt", step, shard) : fmt::format("rank_{}.pt", shard);
      w.to = {"/p", made.directory, file, framework::ddp, shard, shards, keep, 1s};
      const auto content = fmt::format("{} {} {} {}", as.value, number, step, shard);
      const auto written = writer.write(w, ports::bytes_of(content), never_stops);
      if (!written)
        return tl::make_unexpected(written.error());
      order.to = w.to;
      order.says.shards.push_back({file, *written, "node"});
      made.content[file_in(made.directory, file)] = content;
    }
    order.says.step = step;
    order.says.made_by = as;
    order.says.save = number;
    order.says.world_size = shards;
    order.says.layout = "ddp";
    const auto done = writer.commit(order);
    if (!done)
      return tl::make_unexpected(done.error());
    writer.retain({order.to, {order.says.id(), order.says.id()}, step, as});
    made.manifest = at_.all().at(made.manifest_name());
    completed_.push_back(std::move(made));
    return {};
  }

  std::string of_another_version() {
    const auto step = number();
    const auto body = fmt::format("{{\"troupe_checkpoint\":1,\"step\":{},\"sequence\":1,", step);
    const auto name = fmt::format("{}/troupe-manifest.json", step);
    if (at_.all().count(name) != 0)
      return "nothing";
    at_.put(name, body + "\"crc32\":" + crc_of(body) + "}\n");
    at_.put(fmt::format("{}/rank_9.pt", step), "of another version");
    return fmt::format("another version has saved {}", step);
  }

  std::uint64_t number() { return last_number_ = 10 * random_.below(12); }

  std::string put(const char* first, const char* second, const char* who) {
    const auto step = number();
    for (const auto* name : {first, second}) {
      const auto file = fmt::format(fmt::runtime(name), step);
      if (at_.all().count(file) == 0)
        at_.put(file, fmt::format("{} by {}", step, who));
    }
    return fmt::format("{} has saved {}", who, step);
  }

  /// `cp -r place/* elsewhere/`, or a sync of an object store, all the way down.
  std::string copy_without_hidden_names() {
    for (const auto& [name, content] : at_.all())
      if (is_hidden(name))
        at_.erase(name);
    return "it is copied, without hidden names";
  }

  std::string copy_of_a_step() {
    const auto all = at_.all();
    const auto* step = any_completed();
    if (step == nullptr || step->directory == ".")
      return "nothing";
    const auto to = fmt::format("kept-{}", random_.below(3));
    for (const auto& [name, content] : all)
      if (name.rfind(step->directory + "/", 0) == 0)
        at_.put(to + name.substr(step->directory.size()), content);
    return fmt::format("'{}' is copied to '{}'", step->directory, to);
  }

  std::string half_deleted() {
    const auto* step = any_completed();
    if (step == nullptr)
      return "nothing";
    std::vector<std::string> parts{step->manifest_name(), marker_of(step->id.step)};
    for (const auto& [name, content] : step->content)
      parts.push_back(name);
    if (step->directory != ".")
      parts.push_back(step->directory);
    const auto& part = parts[random_.below(parts.size())];
    at_.erase(part);
    return fmt::format("'{}' is removed", part);
  }

  std::string cut_short() {
    const auto* step = any_completed();
    const auto all = at_.all();
    if (step == nullptr || all.count(step->manifest_name()) == 0)
      return "nothing";
    const auto& text = all.at(step->manifest_name());
    at_.put(step->manifest_name(), text.substr(0, random_.below(text.size())));
    return fmt::format("'{}' is cut short", step->manifest_name());
  }

  const completed_step* any_completed() {
    return completed_.empty() ? nullptr : &completed_[random_.below(completed_.size())];
  }

  // ---- What must hold ----

  /// Not by the product's code: the manifest is the very text that was written with it, in some
  /// directory, and so are all of its files.
  static bool lies_whole(const completed_step& one, const files& all) {
    const auto is = [&all](const std::string& name, const std::string& content) {
      const auto found = all.find(name);
      return found != all.end() && found->second == content;
    };
    if (one.directory == ".")
      return is(one.manifest_name(), one.manifest) &&
             std::all_of(one.content.begin(), one.content.end(),
                         [&](const auto& f) { return is(f.first, f.second); });
    std::set<std::string> directories;
    for (const auto& [name, content] : all)
      if (const auto slash = name.find('/'); slash != name.npos && name.front() != '.')
        directories.insert(name.substr(0, slash));
    return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
      return is(directory + "/" + std::string(manifest_name_), one.manifest) &&
             std::all_of(one.content.begin(), one.content.end(), [&](const auto& f) {
               return is(directory + f.first.substr(one.directory.size()), f.second);
             });
    });
  }
  static constexpr std::string_view manifest_name_ = ckpt::manifest_name;

  static result<void> read(ports::storage& storage, const completed_step& one) {
    std::uint32_t number = 0;
    for (const auto& [name, content] : one.content) {
      const auto found = find_shard(storage, one.id, number++);
      if (!found)
        return tl::make_unexpected(found.error());
      std::string into(content.size(), ' ');
      const ports::bytes_room room{reinterpret_cast<std::byte*>(into.data()), into.size()};
      if (auto got = load_shard(storage, found->of, found->which, room, never_stops); !got)
        return got;
      CHECK_MESSAGE(into == content, "step " << one.id.step << " is read as '" << into << "'");
    }
    return {};
  }

  const completed_step* known(const state_id& id) const {
    const auto found = std::find_if(completed_.rbegin(), completed_.rend(),
                                    [&id](const auto& one) { return one.id == id; });
    return found == completed_.rend() ? nullptr : &*found;
  }

  /// As a load takes it: of those that are seen the newest that can be read.
  std::optional<state_id> newest() {
    testing::read_only_storage storage(at_.open());
    rank_view view;
    const auto seen = see_steps(storage, 1'000, view);
    REQUIRE_MESSAGE(seen, seen.error().what);
    for (const auto& one : view.disk) {
      const auto* step = known(one.id);
      REQUIRE_MESSAGE(step != nullptr, "step " << one.id.step << " was never completed");
      if (read(storage, *step))
        return one.id;
    }
    return std::nullopt;
  }

  void look() {
    const auto all = at_.all();
    testing::read_only_storage storage(at_.open());
    rank_view view;
    REQUIRE(see_steps(storage, 1'000, view));
    for (const auto& one : completed_) {
      if (!lies_whole(one, all))
        continue;
      const auto found = std::find_if(view.disk.begin(), view.disk.end(),
                                      [&](const auto& seen) { return seen.id == one.id; });
      CHECK_MESSAGE(found != view.disk.end(), "step " << one.id.step << " is not found");
      const auto got = read(storage, one);
      CHECK_MESSAGE(got, (got ? "" : got.error().what));
    }
    check_told(storage, all);
    CHECK(storage.writes() == 0);
    CHECK(at_.all() == all);
  }

  /// What was complete once and is newer than what is taken is told, if anything of it is there:
  /// its manifest, its directory, or a tracker that names it.
  void check_told(ports::storage& storage, const files& all) {
    const auto taken = newest();
    const auto told = steps_passed_over(storage, taken);
    REQUIRE(told);
    std::string lines;
    for (const auto& one : *told) {
      CHECK_FALSE(one.why.empty());
      lines += fmt::format("{}: {}\n", one.what, one.why);
    }
    for (const auto& one : completed_) {
      const auto manifest = all.find(one.manifest_name());
      if ((taken && !(*taken < one.id)) || manifest == all.end() ||
          is_of_another(one, manifest->second))
        continue;
      rank_view view;
      REQUIRE(see_steps(storage, 1'000, view));
      const bool listed = std::any_of(view.disk.begin(), view.disk.end(),
                                      [&](const auto& seen) { return seen.id == one.id; });
      // A load that tries one that is listed says itself what it could not read.
      const bool is_told =
          listed || lines.find(fmt::format("step {}:", one.id.step)) != lines.npos ||
          lines.find(fmt::format("'{}'", one.directory == "." ? one.manifest_name()
                                                              : one.directory)) != lines.npos;
      CHECK_MESSAGE(is_told, "step " << one.id.step << " is passed over: " << lines);
    }
    if (const auto tracker = all.find("dlrover_latest.txt"); tracker != all.end())
      if (const auto named = std::strtoull(tracker->second.c_str(), nullptr, 10);
          !taken || taken->step < named) {
        rank_view view;
        REQUIRE(see_steps(storage, 1'000, view));
        const bool listed = std::any_of(view.disk.begin(), view.disk.end(),
                                        [&](const auto& seen) { return seen.id.step == named; });
        CHECK_MESSAGE((listed || lines.find(fmt::format("step {}:", named)) != lines.npos),
                      "the tracker names " << named << ", and it is passed over: " << lines);
      }
  }

  /// Its directory is another save's by now.
  bool is_of_another(const completed_step& one, const std::string& manifest) const {
    return std::any_of(completed_.begin(), completed_.end(), [&](const auto& other) {
      return other.id != one.id && other.manifest == manifest;
    });
  }

  /// One more run, with a rule that keeps little.
  void go_on() {
    const auto before = at_.all();
    const bool anew = random_.chance(0.4);
    const auto taken = anew ? std::nullopt : newest();
    const run_at_start who{"the last run", by_some_clock()};
    const auto storage = at_.open();
    const auto as = saves_as(*storage, who);
    REQUIRE_MESSAGE(as, as.error().what);
    REQUIRE(begin_run(*storage, who, *as, {taken ? std::optional(taken->save) : std::nullopt, {}}));
    const auto line = line_of(*storage, term_of(*as));
    REQUIRE(line);
    auto step = taken ? taken->step : 0;
    std::optional<completed_step> last;
    std::set<std::uint64_t> saved;
    for (std::uint64_t n = 1; n <= 20 && saved.size() < 4; ++n) {
      step += 10;
      const auto how = save(*as, n, step, {1 + random_.below(2), 0}, random_.chance(0.3));
      told_ += fmt::format("  the last run saves {}{}\n", step, how ? "" : ": " + how.error().what);
      if (how) {
        last = completed_.back();
        saved.insert(step);
      } else {
        CHECK_MESSAGE(how.error().code == errc::refused, how.error().what);
        CHECK_FALSE(how.error().what.empty());
      }
    }
    check_kept(before, at_.all(), *line, saved);
    REQUIRE_MESSAGE(last, "no step could be saved");
    const auto found = newest();
    REQUIRE(found);
    CHECK_MESSAGE(*found == last->id, "step " << found->step << " is the newest");
  }

  /// Of what was there only steps that the run stands upon may be gone or changed: those that a
  /// rule removes, and those whose number it has come to again.
  void check_kept(const files& before, const files& after, const line& of,
                  const std::set<std::uint64_t>& saved) const {
    std::set<std::string> may_go;
    for (const auto& [name, content] : before) {
      const auto step = step_of_marker(name);
      const auto marker = step ? marker_in(content) : failure(errc::invalid, "");
      if (!marker || !of.touches(marker->begun_by.made_by))
        continue;
      const auto manifest = manifest_of_step(*step, marker->directory);
      const bool complete = before.count(manifest) != 0;
      if (complete && !of.holds(marker->begun_by) && saved.count(*step) == 0)
        continue;
      add_files_of(*step, marker->directory, before, may_go);
    }
    for (const auto& one : completed_)
      if (before.count(one.manifest_name()) != 0 &&
          before.at(one.manifest_name()) == one.manifest &&
          (of.holds(one.id.save) ||
           (of.touches(one.id.save.made_by) && saved.count(one.id.step) != 0)))
        add_files_of(one.id.step, one.directory, before, may_go);
    for (const auto& one : before) {
      const auto& name = one.first; // no binding: the macros' lambdas capture it
      const auto& content = one.second;
      if (is_cache(name) || name == "dlrover_latest.txt" || may_go.count(name) != 0)
        continue;
      const auto now = after.find(name);
      CHECK_MESSAGE(now != after.end(), "'" << name << "' is gone");
      if (now != after.end())
        CHECK_MESSAGE(now->second == content, "'" << name << "' is another");
    }
  }

  void add_files_of(std::uint64_t step, const std::string& directory, const files& all,
                    std::set<std::string>& into) const {
    into.insert(manifest_of_step(step, directory));
    for (const auto& [name, content] : all)
      if (directory != "." && name.rfind(directory + "/", 0) == 0)
        into.insert(name);
      else if (directory == "." && name.rfind(fmt::format("step-{}.", step), 0) == 0)
        into.insert(name);
  }

  ground& at_;
  random_source random_;
  std::uint64_t runs_ = 0, last_number_ = 0;
  std::vector<completed_step> completed_;
  std::string told_ = "history:\n";
};

} // namespace troupe::ckpt::histories
