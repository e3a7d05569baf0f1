#pragma once

#include "tests/storage/makers.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What a directory has been through, and what a run has to find in it: histories_test.cpp.
namespace troupe::ckpt::histories {

class history : private makers {
 public:
  using makers::make;
  using makers::makers;

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
    origin from;
    const auto taken = anew ? std::nullopt : newest(&from);
    from.save = taken ? std::optional(taken->save) : std::nullopt;
    const run_at_start who{"the last run", by_some_clock()};
    const auto storage = at_.open();
    const auto as = saves_as(*storage, who);
    REQUIRE_MESSAGE(as, as.error().what);
    REQUIRE(begin_run(*storage, who, *as, from));
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
        if (taken)
          check_of_use(step, *taken, how.error().what);
      }
    }
    check_kept(before, at_.all(), *line, saved);
    REQUIRE_MESSAGE(last, "no step could be saved");
    const auto found = newest();
    REQUIRE(found);
    CHECK_MESSAGE(*found == last->id, "step " << found->step << " is the newest");
  }

  /// A number is refused for a state that training can go on from, if with another version, or for
  /// one that no load has looked at, as it is older than what was taken.
  void check_of_use(std::uint64_t step, const state_id& taken, const std::string& why) {
    if (why.find("by another run") == why.npos)
      return;
    const auto all = at_.all();
    const bool whole = std::any_of(completed_.begin(), completed_.end(), [&](const auto& one) {
      return one.id.step == step && lies_whole(one, all);
    });
    const auto text = all.find(marker_of(step));
    const auto marker = text != all.end() ? marker_in(text->second) : failure(errc::absent, "");
    const bool older = marker && marker->begun_by < taken.save;
    const auto there = all.find(fmt::format("{}/{}", step, manifest_name_));
    const bool of_another_version =
        there != all.end() && there->second.rfind("{\"troupe_checkpoint\":1,", 0) == 0;
    CHECK_MESSAGE((whole || older || of_another_version), (told_ + why));
  }

  /// Of what was there only steps that the run stands upon may be gone or changed: those that a
  /// rule removes, and those whose number it has come to again.
  void check_kept(const files& before, const files& after, const line& of,
                  const std::set<std::uint64_t>& saved) const {
    std::set<std::string> may_go;
    for (const auto& [name, content] : before) {
      const auto step = step_of_marker(name);
      const auto marker = step ? marker_in(content) : failure(errc::invalid, "");
      const auto is_marked = [&marker](const save_id& id) { return id == marker->begun_by; };
      if (marker && saved.count(*step) != 0 &&
          (std::any_of(of.left.begin(), of.left.end(), is_marked) ||
           std::any_of(of.lacking.begin(), of.lacking.end(), is_marked) ||
           std::any_of(of.damaged.begin(), of.damaged.end(), is_marked)))
        add_files_of(*step, marker->directory, before, may_go);
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
           (saved.count(one.id.step) != 0 &&
            std::count(of.damaged.begin(), of.damaged.end(), one.id.save) +
                    std::count(of.lacking.begin(), of.lacking.end(), one.id.save) !=
                0) ||
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
};

} // namespace troupe::ckpt::histories
