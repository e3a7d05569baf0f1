#include "tests/storage/storage_contract.hpp"

#include "runtime/os/storage/posix_storage.hpp"
#include "runtime/ports/testing/memory_storage.hpp"
#include "tests/storage/power_cut_disk.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace troupe;
using ports::never_stops;
using testing::sample;
using testing::temporary_directory;

namespace {

/// Small blocks and direct writes from the first page on, so that small files go every way.
os::posix_storage_options small(bool direct, bool ring) {
  os::posix_storage_options how;
  how.block = 16'384;
  how.depth = 3;
  how.direct_from = 1;
  how.direct = direct;
  how.ring = ring;
  return how;
}

testing::storage_place place_on_disk(os::posix_storage_options how) {
  auto directory = std::make_shared<temporary_directory>();
  return {[how, directory] {
            return std::make_unique<os::posix_storage>(directory->path.string() + "/made/by/it",
                                                       how);
          },
          directory};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("storage in memory keeps the promises of a storage") {
  testing::check_storage_contract([] {
    auto place = std::make_shared<ports::testing::memory_place>();
    return testing::storage_place{
        [place] { return std::make_unique<ports::testing::memory_storage>(*place); }, place};
  });
}

TEST_CASE("storage on disk, past the page cache with io_uring") {
  testing::check_storage_contract([] { return place_on_disk(small(true, true)); });
}

TEST_CASE("storage on disk, past the page cache without io_uring") {
  testing::check_storage_contract([] { return place_on_disk(small(true, false)); });
}

TEST_CASE("storage on disk, through the page cache") {
  testing::check_storage_contract([] { return place_on_disk(small(false, false)); });
}

TEST_CASE("how it writes is found out at the first put and told") {
  const temporary_directory directory;
  os::posix_storage storage(directory.path.string(), small(true, true));
  REQUIRE(storage.put("file", sample(100'000).view(), never_stops));
  // Which one depends on this machine; whatever it is has a reason.
  const auto told = storage.describe();
  CHECK(contains(told, directory.path.string()));
  CHECK((contains(told, "(io_uring)") || contains(told, "no io_uring here: ") ||
         contains(told, "this file system ")));
}

TEST_CASE("what the kernel or the file system refuses is done without, and told") {
  using refusals = testing::power_cut_disk::refusals;
  struct row {
    refusals what;
    const char* told;
  };
  const row rows[] = {
      {{}, "direct writes of 16.0 KiB, 3 at a time (io_uring)"},
      {{true}, "through the page cache (this file system has no direct writes)"},
      {{false, true}, "through the page cache (this file system takes no direct writes)"},
      {{false, false, true}, "direct writes of 16.0 KiB, one at a time (no io_uring here: "},
      {{false, true, true}, "through the page cache (this file system takes no direct writes)"},
      {{false, false, false, true, true}, "3 at a time (io_uring)"},
  };
  for (const auto& r : rows) {
    testing::power_cut_disk disk(1);
    disk.refuse(r.what);
    os::posix_storage storage("/ckpt", small(true, true), disk.new_process());
    for (const std::size_t size : {100'000, 50'001}) {
      REQUIRE(storage.put("file", sample(size, size).view(), never_stops));
      CHECK(testing::content_of(storage, "file") == sample(size, size).text());
    }
    CHECK_MESSAGE(contains(storage.describe(), r.told), storage.describe());
    CHECK(disk.files().size() == 1);
  }
}

TEST_CASE("what a dead process has left is removed, what a living one writes is not") {
  const temporary_directory directory;
  const auto dead = directory.path / ".troupe-part-00000000000000aa";
  const auto living = directory.path / ".troupe-part-00000000000000bb";
  const auto foreign = directory.path / ".troupe-other";
  for (const auto& path : {dead, living, foreign})
    std::ofstream(path) << "begun";
  const int held = ::open(living.c_str(), O_WRONLY);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  os::posix_storage storage(directory.path.string());
  CHECK(storage.list("")->size() == 1); // reading changes nothing
  CHECK(std::filesystem::exists(dead));
  REQUIRE(storage.replace("latest", "1"));
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK(std::filesystem::exists(living));
  CHECK(std::filesystem::exists(foreign));
  ::close(held);
}

TEST_CASE("a limit on the size of files is an error with the way out, and no signal") {
  const temporary_directory directory;
  os::posix_storage storage(directory.path.string());
  REQUIRE(storage.replace("file", "before"));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit none{65'536, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const auto refused = storage.put("file", sample(100'000).view(), never_stops);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(contains(refused.error().what, (directory.path / "file").string()));
  CHECK(contains(refused.error().what, "ulimit -f"));
  CHECK(testing::content_of(storage, "file") == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path), {}) == 1);
}

TEST_CASE("a disk without room says how much is missing before anything is written") {
  const temporary_directory directory;
  os::posix_storage storage(directory.path.string());
  // More than any disk has; the bytes are never read.
  const sample one(4'096);
  const ports::bytes_view huge{one.view().data, std::size_t{1} << 43};
  const auto refused = storage.put("100/rank_0.pt", huge, never_stops);
  REQUIRE_FALSE(refused);
  CHECK((contains(refused.error().what, "are missing") ||
         contains(refused.error().what, "ulimit -f")));
  CHECK(contains(refused.error().what, "100/rank_0.pt"));
  CHECK(std::filesystem::is_empty(directory.path)); // nor is the directory that was made for it
}

TEST_CASE("a place that is a file, and one that may not be written to, are named") {
  const temporary_directory directory;
  std::ofstream(directory.path / "file") << "x";
  os::posix_storage storage((directory.path / "file").string());
  const auto refused = storage.replace("latest", "1");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(contains(refused.error().what, (directory.path / "file").string()));
  // /proc takes no new files of anybody, root included.
  os::posix_storage nowhere("/proc/troupe");
  const auto no = nowhere.replace("latest", "1");
  REQUIRE_FALSE(no);
  CHECK(contains(no.error().what, "/proc/troupe"));
}
