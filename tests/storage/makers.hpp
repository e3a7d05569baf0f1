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

/// The makers of a directory: runs of ours, people and other tools. A seed chooses each event.
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

class makers {
 public:
  makers(ground& at, std::uint64_t seed) : at_(at), random_(seed) {}

  void make() {
    const auto events = 2 + random_.below(6);
    for (std::uint64_t n = 0; n < events; ++n) {
      const auto which = random_.below(16);
      const auto told = one_more(n < 2 ? random_.below(4) : which);
      told_ += "  " + told + "\n";
    }
  }

 protected:
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
    case 13:
      return shard_cut_short();
    case 14:
      return killed_in_a_save();
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
      if (const auto taken = newest(&from)) {
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

  static persist_request request(generation as, std::uint64_t number, std::uint64_t step,
                                 retention keep, bool in_place, std::uint32_t shard) {
    persist_request w;
    w.step = step;
    w.made_by = as;
    w.save = number;
    w.rank = shard;
    w.world_size = shards;
    const auto file =
        in_place ? fmt::format("step-{}.{}.pt", step, shard) : fmt::format("rank_{}.pt", shard);
    w.to = {"/p", in_place ? "." : std::to_string(step), file, framework::ddp, shard, shards, keep,
            1s};
    return w;
  }

  result<void> save(generation as, std::uint64_t number, std::uint64_t step, retention keep,
                    bool in_place) {
    place_writer writer(at_.open(), "node");
    completed_step made;
    made.id = {{as, number}, step};
    made.directory = in_place ? "." : std::to_string(step);
    commit_order order;
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const auto w = request(as, number, step, keep, in_place, shard);
      const auto& file = w.to.file;
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

  std::string shard_cut_short() {
    const auto* step = any_completed();
    const auto all = at_.all();
    if (step == nullptr)
      return "nothing";
    const auto& name = step->content.begin()->first;
    if (all.count(name) == 0)
      return "nothing";
    at_.put(name, all.at(name).substr(0, random_.below(all.at(name).size())));
    return fmt::format("'{}' is cut short", name);
  }

  /// A run whose only save has one of its shards.
  std::string killed_in_a_save() {
    const run_at_start who{fmt::format("run {}", ++runs_), by_some_clock()};
    const auto storage = at_.open();
    const auto as = saves_as(*storage, who);
    REQUIRE_MESSAGE(as, as.error().what);
    origin from;
    const auto taken = newest(&from);
    from.save = taken ? std::optional(taken->save) : std::nullopt;
    REQUIRE(begin_run(*storage, who, *as, from));
    place_writer writer(at_.open(), "node");
    const auto w = request(*as, 1, (taken ? taken->step : 0) + 10, {0, 0}, false, 0);
    const auto begun = writer.write(w, ports::bytes_of("one of two"), never_stops);
    return fmt::format("{} is killed while it saves {}{}", who.run, w.step,
                       begun ? "" : ": " + begun.error().what);
  }

  const completed_step* any_completed() {
    return completed_.empty() ? nullptr : &completed_[random_.below(completed_.size())];
  }

  // ---- What a load takes ----

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

  /// As a load takes it: of those that are seen the newest that can be read. `from`: what that
  /// has found to be damaged.
  std::optional<state_id> newest(origin* from = nullptr) {
    testing::read_only_storage storage(at_.open());
    rank_view view;
    const auto seen = see_steps(storage, 1'000, view);
    REQUIRE_MESSAGE(seen, seen.error().what);
    for (const auto& one : view.disk) {
      const auto* step = known(one.id);
      REQUIRE_MESSAGE(step != nullptr, "step " << one.id.step << " was never completed");
      const auto got = read(storage, *step);
      if (got)
        return one.id;
      if (from == nullptr || got.error().code == errc::unavailable)
        continue;
      const auto complete = step_catalog::open_one(storage, one.id.step);
      const auto* found = complete ? complete->find(one.id.step) : nullptr;
      bool lacks = false;
      if (found != nullptr && found->is_complete())
        for (const auto& shard : found->says.shards)
          lacks = lacks || !check_shard_sizes(storage, *found, shard);
      (lacks ? from->lacking : from->damaged).push_back(one.id.save);
    }
    return std::nullopt;
  }

  ground& at_;
  random_source random_;
  std::vector<completed_step> completed_;
  std::string told_ = "history:\n";

 private:
  std::uint64_t runs_ = 0, last_number_ = 0;
};

} // namespace troupe::ckpt::histories
