#include "ckpt/catalog/ddp_layout.hpp"
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/catalog/step_names.hpp"
#include "runtime/os/storage/posix_storage.hpp"
#include "tests/rounds.hpp"
#include "tests/storage/power_cut_disk.hpp"
#include "tests/storage/storage_contract.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;
using testing::mishap;
using testing::power_cut_disk;
using testing::sample;

namespace {

constexpr global_rank ranks = 2;
constexpr std::uint64_t step_by = 10;
constexpr retention keep{2, 0};

/// Seeds of jobs whose steps have directories, and of jobs that save in place; eight each.
constexpr std::uint64_t in_directories = 0;
constexpr std::uint64_t in_the_place = 8;

/// A job that saves every ten steps, through crashes, and what it may rely on. Some jobs save in
/// place.
class job {
 public:
  explicit job(std::uint64_t seed) : seed_(seed), disk_(seed) {}
  power_cut_disk& disk() { return disk_; }

  /// Trains and saves up to a step, from what it finds; false if the process ended on the way.
  /// Saves that fail are left out, as training goes on.
  bool run(std::uint64_t to, std::uint64_t back_by = 0) {
    try {
      os::posix_storage storage("/ckpt", options(), disk_.new_process());
      auto catalog = step_catalog::open(storage);
      if (!catalog)
        return false;
      const auto* found = catalog->newest();
      auto at = found == nullptr ? 0 : found->step;
      if (found != nullptr && !catalog->point(framework::ddp))
        return false;
      at -= std::min(at, back_by);
      while (at < to)
        save(storage, *catalog, at += step_by);
      return true;
    } catch (const testing::process_ended&) {
      return false;
    }
  }

  /// What a new process finds must be what was promised.
  void check() {
    os::posix_storage storage("/ckpt", options(), disk_.new_process());
    const auto catalog = step_catalog::open(storage);
    REQUIRE_MESSAGE(catalog, catalog.error().what);
    const auto* newest = catalog->newest();
    if (promised_ != save_id{}) {
      REQUIRE(newest != nullptr);
      CHECK_FALSE(newest->says.id() < promised_);
      if (newest->says.id() == promised_)
        CHECK(newest->step == promised_step_);
    }
    for (const auto& entry : catalog->steps()) {
      const found_step& found = entry.second;
      CHECK_MESSAGE(found.state != step_state::damaged, found.why);
      if (found.state == step_state::complete)
        check_shards(storage, found);
    }
    check_claims(storage, *catalog);
    // Once there is a complete step, a tracker names one; it is written after.
    if (const auto told = storage.get_small("dlrover_latest.txt", 100)) {
      const auto named = catalog->steps().find(std::stoull(*told));
      REQUIRE(named != catalog->steps().end());
      CHECK(named->second.state == step_state::complete);
      CHECK_FALSE(newest->says.id() < named->second.says.id());
    } else {
      CHECK(promised_ == save_id{});
    }
  }

  /// Bytes that are not what was written are told, whatever else is right. How many were.
  std::uint64_t look_for_damage() {
    std::uint64_t told = 0;
    os::posix_storage storage("/ckpt", options(), disk_.new_process());
    const auto catalog = step_catalog::open(storage);
    if (!catalog)
      return 1;
    for (const auto& [step, found] : catalog->steps()) {
      if (found.state != step_state::complete) {
        ++told;
        continue;
      }
      for (const auto& shard : found.says.shards) {
        sample into(shard.file.bytes);
        const ports::bytes_room room{const_cast<std::byte*>(into.view().data), shard.file.bytes};
        if (!load_shard(storage, found, shard, room, never_stops))
          ++told;
        else
          CHECK(was_written(step, shard, into.text()));
      }
    }
    return told;
  }

  std::uint64_t promised_step() const { return promised_step_; }

 private:
  os::posix_storage_options options() const {
    os::posix_storage_options how;
    how.block = 4'096;
    how.depth = 3;
    how.direct_from = 4'096;
    // Every other job does without.
    how.ring = seed_ % 2 == 0;
    how.direct = seed_ % 4 < 3;
    how.first_part = 1;
    return how;
  }

  bool saves_in_place() const { return seed_ % 16 >= in_the_place; }
  std::string directory(std::uint64_t step) const {
    return saves_in_place() ? std::string(in_place) : ddp_layout::directory(step);
  }
  std::string file(std::uint64_t step, global_rank rank) const {
    return saves_in_place() ? fmt::format("step-{}.{}", step, ddp_layout::shard(rank))
                            : ddp_layout::shard(rank);
  }

  void save(os::posix_storage& storage, step_catalog& catalog, std::uint64_t step) {
    ++last_.number;
    if (!catalog.begin(step, directory(step), last_))
      return;
    manifest m;
    m.step = step;
    m.made_by = last_.made_by;
    m.save = last_.number;
    m.world_size = ranks;
    m.layout = ddp_layout::name;
    for (global_rank rank = 0; rank < ranks; ++rank) {
      const auto name = file(step, rank);
      // Never twice the same, so that what is there says which attempt it is of.
      const auto number = ++written_;
      const sample bytes(3'000 + number * 1'237 % 9'000, number);
      const auto put = catalog.claim(step, name).and_then([&] {
        return storage.put(file_in(directory(step), name), bytes.view(), never_stops);
      });
      if (!put)
        return;
      m.shards.push_back({name, *put, "node"});
      contents_[{step, name, put->crc32}] = bytes.text();
    }
    if (!catalog.commit(m, framework::ddp))
      return;
    promised_ = last_;
    promised_step_ = step;
    catalog.retain(keep, {last_, last_});
  }

  /// Of a shard in the place itself it is known which step's it is, or it could never be removed,
  /// and a later save of its step would take it for a foreign file.
  void check_claims(os::posix_storage& storage, const step_catalog& catalog) {
    const auto listed = storage.list("");
    REQUIRE_MESSAGE(listed, listed.error().what);
    for (const auto& entry : *listed) {
      unsigned long long step = 0;
      if (std::sscanf(entry.name.c_str(), "step-%llu", &step) != 1)
        continue;
      CHECK_MESSAGE(catalog.steps().count(step) == 1, entry.name);
      CHECK_MESSAGE(storage.list(claim_of(step, entry.name))->size() == 1, entry.name);
    }
  }

  void check_shards(os::posix_storage& storage, const found_step& found) {
    REQUIRE(found.says.shards.size() == ranks);
    for (const auto& shard : found.says.shards) {
      sample into(shard.file.bytes);
      const ports::bytes_room room{const_cast<std::byte*>(into.view().data), shard.file.bytes};
      const auto loaded = load_shard(storage, found, shard, room, never_stops);
      REQUIRE_MESSAGE(loaded, loaded.error().what);
      CHECK(was_written(found.step, shard, into.text()));
    }
  }

  bool was_written(std::uint64_t step, const shard& which, const std::string& content) const {
    const auto known = contents_.find({step, which.name, which.file.crc32});
    return known != contents_.end() && known->second == content;
  }

  std::uint64_t seed_;
  power_cut_disk disk_;
  std::uint64_t written_ = 0;
  std::uint64_t promised_step_ = 0;
  save_id promised_;
  save_id last_{generation{1}, 0}; ///< each attempt has a number of its own
  std::map<std::tuple<std::uint64_t, std::string, std::uint32_t>, std::string> contents_;
};

/// Whether a failing injection was chosen by hand, and which: TROUPE_CRASH="kind call seed".
struct chosen {
  std::string kind;
  std::uint64_t call = 0;
  std::uint64_t seed = 0;

  static std::optional<chosen> from_environment() {
    const char* text = std::getenv("TROUPE_CRASH");
    std::array<char, 32> kind{};
    unsigned long long call = 0;
    unsigned long long seed = 0;
    if (text == nullptr || std::sscanf(text, "%31s %llu %llu", kind.data(), &call, &seed) != 3)
      return std::nullopt;
    return chosen{kind.data(), call, seed};
  }
  bool allows(const std::string& k, std::uint64_t c, std::uint64_t s) const {
    return k == kind && c == call && s == seed;
  }
};

/// From one system call to the next that something happens at.
std::uint64_t stride(const std::optional<chosen>& only) {
  return sanitized && !only ? 7 : 1;
}

std::string replay(const std::string& kind, std::uint64_t call, std::uint64_t seed) {
  return fmt::format("TROUPE_CRASH='{} {} {}' build/release/tests/storage_test -tc='crash*'", kind,
                     call, seed);
}

/// One thing goes wrong at one system call; afterwards nothing does. False if the job has fewer
/// calls.
bool one_mishap(mishap what, std::uint64_t call, std::uint64_t seed) {
  INFO("replay: ", replay(to_string(what), call, seed));
  constexpr std::uint64_t last = 40;
  job j(seed);
  j.disk().plan(what, call);
  j.run(last);
  if (!j.disk().has_happened())
    return false;
  j.disk().plan(mishap::none, 0);
  j.check();
  REQUIRE(j.run(last + step_by));
  j.check();
  CHECK(j.promised_step() == last + step_by);
  if (what == mishap::kill || what == mishap::power_cut)
    for (const auto& file : j.disk().files())
      CHECK_MESSAGE(file.first.find(".troupe-part-") == std::string::npos, file.first);
  return true;
}

/// At every system call of the job. How often something went wrong.
std::uint64_t one_mishap_everywhere(mishap what, std::uint64_t seed,
                                    const std::optional<chosen>& only) {
  std::uint64_t injected = 0;
  for (std::uint64_t call = only ? 0 : seed % stride(only);; call += stride(only)) {
    if (only && call > only->call)
      return injected;
    if (only && !only->allows(to_string(what), call, seed))
      continue;
    if (!one_mishap(what, call, seed))
      return injected;
    ++injected;
  }
}

/// Several things go wrong, in processes that follow each other and sometimes go back.
void many_mishaps(std::uint64_t seed) {
  INFO("replay: ", replay("many", 0, seed));
  constexpr mishap kinds[] = {mishap::kill,     mishap::power_cut, mishap::power_cut,
                              mishap::no_space, mishap::io_error,  mishap::short_write};
  random_source random(seed);
  job j(seed);
  const auto processes = 2 + random.below(5);
  std::uint64_t to = 0;
  for (std::uint64_t n = 0; n < processes; ++n) {
    to += step_by * (1 + random.below(3));
    j.disk().plan(kinds[random.below(std::size(kinds))], random.below(300));
    const bool goes_back = random.chance(0.3);
    j.run(to, goes_back ? step_by * (1 + random.below(3)) : 0);
    // Without a look in between: what is visible need not be durable when the next one begins.
    if (random.chance(0.5)) {
      j.disk().plan(mishap::none, 0);
      j.check();
    }
  }
  j.disk().plan(mishap::none, 0);
  j.check();
  REQUIRE(j.run(to + 50));
  j.check();
}

} // namespace

TEST_CASE("crash: one thing goes wrong at any system call, and no checkpoint is lost") {
  const auto only = chosen::from_environment();
  std::uint64_t injected = 0;
  for (const auto what :
       {mishap::kill, mishap::power_cut, mishap::no_space, mishap::io_error, mishap::short_write})
    for (const auto first : {in_directories, in_the_place})
      for (auto seed = first; seed < first + (what == mishap::power_cut ? 3 : 1); ++seed)
        injected += one_mishap_everywhere(what, seed, only);
  MESSAGE("injections: ", injected);
  CHECK((only || sanitized || injected >= 3'000));
}

TEST_CASE("crash: many things go wrong, and no checkpoint is lost") {
  const auto only = chosen::from_environment();
  for (std::uint64_t seed = 1; seed <= rounds(500); ++seed)
    if (!only || only->allows("many", 0, seed))
      many_mishaps(seed);
}

TEST_CASE("crash: what a killed process has made visible only is not relied upon") {
  const auto only = chosen::from_environment();
  for (const std::uint64_t cut : {4, 12, 30, 60})
    for (std::uint64_t call = cut % stride(only);; call += stride(only)) {
      if (only && !only->allows("kill", call, cut) && call <= only->call)
        continue;
      INFO("replay: ", replay("kill", call, cut));
      job j(cut);
      j.disk().plan(mishap::kill, call);
      j.run(30);
      if (!j.disk().has_happened() || (only && call > only->call))
        break;
      j.disk().plan(mishap::power_cut, cut);
      j.run(100);
      j.disk().plan(mishap::none, 0);
      j.check();
    }
}

TEST_CASE("crash: a claim that a killed process has made visible only is not relied upon") {
  for (std::uint64_t call = 0;; call += stride({}))
    for (std::uint64_t cut = 0;; cut += stride({})) {
      INFO("kill at ", call, ", power cut at ", cut);
      job j(in_the_place + cut % 4);
      j.disk().plan(mishap::kill, call);
      j.run(step_by);
      if (!j.disk().has_happened())
        return;
      j.disk().plan(mishap::power_cut, cut);
      j.run(step_by);
      const bool over = !j.disk().has_happened();
      j.disk().plan(mishap::none, 0);
      j.check();
      if (over)
        break;
    }
}

TEST_CASE("crash: a bit that the disk has turned is noticed when the step is loaded") {
  std::uint64_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= rounds(100); ++seed) {
    INFO("seed ", seed);
    job j(seed);
    REQUIRE(j.run(30));
    REQUIRE(j.look_for_damage() == 0);
    const auto where = j.disk().rot();
    const auto told = j.look_for_damage();
    // What is in `.troupe` says nothing that manifests do not say, of complete steps.
    const bool said_twice =
        where == "/ckpt/dlrover_latest.txt" || where.rfind("/ckpt/.troupe/", 0) == 0;
    CHECK_MESSAGE((told > 0 || said_twice), where);
    noticed += told;
  }
  CHECK(noticed > 0);
}

TEST_CASE("crash: a disk that fills up keeps the newest step, and goes on when there is room") {
  for (const auto first : {in_directories, in_the_place}) {
    job j(first + 2);
    REQUIRE(j.run(20));
    const auto before = j.promised_step();
    j.disk().set_room(2'500); // enough for what names a step, not for a shard
    REQUIRE(j.run(60));
    j.check();
    CHECK(j.promised_step() == before);
    j.disk().set_room(1'000'000);
    REQUIRE(j.run(60));
    j.check();
    CHECK(j.promised_step() == 60);
  }
}
