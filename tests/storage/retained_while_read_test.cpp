// A load while savers complete steps and remove others.
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/os/storage/posix_storage.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;

namespace {

constexpr int opens = 2'000;
constexpr std::uint64_t saves_least = 40;

/// Saves step after step, each in its own directory or all in the place itself, and keeps one.
class saver {
 public:
  saver(std::string path, std::string directory)
      : storage_(std::move(path)), catalog_(*step_catalog::open(storage_)),
        directory_(std::move(directory)) {}

  void save() {
    manifest m;
    m.step = ++step_;
    m.made_by = generation{1};
    m.save = step_;
    const auto directory = directory_.empty() ? std::to_string(step_) : directory_;
    const auto file = "rank_0-" + std::to_string(step_) + ".pt";
    REQUIRE(catalog_.begin(step_, directory, m.id()));
    REQUIRE(catalog_.claim(step_, file));
    const auto put =
        storage_.put(file_in(directory, file), ports::bytes_of("state " + file), never_stops);
    REQUIRE(put);
    m.shards = {{file, *put, "n0"}};
    REQUIRE(catalog_.commit(m, framework::ddp));
    complete_ = step_;
    const auto done = catalog_.retain({1, 0}, {m.id(), m.id()});
    REQUIRE_FALSE(done.not_removed);
  }
  /// The newest that is known to be complete.
  std::uint64_t complete() const { return complete_; }

 private:
  os::posix_storage storage_;
  step_catalog catalog_;
  std::string directory_;
  std::uint64_t step_ = 0;
  std::atomic<std::uint64_t> complete_{0};
};

/// A step may go between the look at it and the reading of its files. Then these are told absent,
/// and nothing else.
void check_loads(os::posix_storage& storage, const step_catalog& found) {
  if (found.newest() == nullptr)
    return;
  const auto& shard = found.newest()->says.shards.at(0);
  std::vector<std::byte> into(shard.file.bytes);
  const auto loaded =
      load_shard(storage, *found.newest(), shard, {into.data(), into.size()}, never_stops);
  CHECK_MESSAGE((loaded || loaded.error().code == errc::absent), loaded.error().what);
}

} // namespace

TEST_CASE("a place is read while steps are completed and removed: always one, and the newest") {
  for (const char* directory : {"", "."}) {
    CAPTURE(directory);
    const testing::temporary_directory at;
    saver saves(at.path.string(), directory);
    saves.save();
    std::atomic<bool> over{false};
    std::thread saving([&] {
      while (!over)
        saves.save();
    });
    os::posix_storage storage(at.path.string());
    for (int i = 0; i < opens || saves.complete() < saves_least; ++i) {
      const auto before = saves.complete();
      const auto found = step_catalog::open(storage);
      CHECK_MESSAGE(found, found.error().what);
      if (!found)
        continue;
      CHECK(found->newest() != nullptr);
      if (found->newest() != nullptr)
        CHECK(found->newest()->step >= before);
      check_loads(storage, *found);
      for (const auto& each : found->steps())
        CHECK_MESSAGE(each.second.state != step_state::damaged, each.second.why);
    }
    over = true;
    saving.join();
    MESSAGE("saves: ", saves.complete());
  }
}
