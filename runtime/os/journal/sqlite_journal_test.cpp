#include "runtime/os/journal/sqlite_journal.hpp"

#include "runtime/base/limits.hpp"
#include "tests/journal/journal_contract.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace troupe;
using namespace std::chrono_literals;
using testing::append;
using testing::numbered_record;
using testing::numbers_of;
using testing::read_all;

namespace {

class file_world final : public testing::journal_world {
 public:
  file_world() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-journal-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~file_world() override { std::filesystem::remove_all(directory); }

  result<std::unique_ptr<ports::journal_store>> open() override { return open_at(file()); }
  result<std::unique_ptr<ports::journal_store>> open_at(const std::string& path) {
    auto store = os::sqlite_journal::open(path, owner, os::durability::process);
    if (!store)
      return tl::make_unexpected(store.error());
    return std::move(*store);
  }
  bool until(const std::function<bool()>& holds) override {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
    return holds();
  }

  std::string file() const { return (directory / "journal").string(); }

  /// Changes the file behind the journal's back.
  void execute(const char* sql) const {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(file().c_str(), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
  }

  std::filesystem::path directory;
  os::journal_owner owner{"job", std::nullopt};
};

std::string error_text(file_world& world, const std::string& path, errc code) {
  const auto store = world.open_at(path);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == code);
  CHECK(store.error().what.find(path) != std::string::npos);
  return store.error().what;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the journal in SQLite keeps the promises of a journal") {
  testing::check_journal_contract([] { return std::make_unique<file_world>(); });
}

TEST_CASE("a master whose journal was lost is newer than the one before it all the same") {
  file_world world;
  const auto before = (*world.open())->opened_as();
  std::filesystem::remove_all(world.directory);
  std::filesystem::create_directory(world.directory);
  CHECK(before <= (*world.open())->opened_as());
  CHECK(before > term{1'000'000'000'000}); // not a count, which would begin anew
}

TEST_CASE("a file that is something else is refused and not changed") {
  file_world world;
  SUBCASE("text") {
    std::ofstream(world.file()) << std::string(5'000, '#');
    const auto before = bytes_of(world.file());
    CHECK(contains(error_text(world, world.file(), errc::invalid), "is not a journal of Troupe"));
    CHECK(bytes_of(world.file()) == before);
  }
  SUBCASE("another program's database") {
    world.execute("CREATE TABLE records (number INTEGER PRIMARY KEY)");
    const auto before = bytes_of(world.file());
    CHECK(contains(error_text(world, world.file(), errc::invalid), "is not a journal of Troupe"));
    CHECK(bytes_of(world.file()) == before);
  }
  SUBCASE("a journal of a later version") {
    CHECK(world.open());
    world.execute("PRAGMA user_version = 3");
    CHECK(contains(error_text(world, world.file(), errc::refused), "its version is 3"));
  }
}

TEST_CASE("a place where no file can be is named") {
  file_world world;
  const auto nowhere = (world.directory / "no/such/journal").string();
  CHECK(contains(error_text(world, nowhere, errc::refused), "unable to open"));
  CHECK(contains(error_text(world, world.directory.string(), errc::refused), "unable to open"));
  CHECK_FALSE(world.open_at(""));
}

TEST_CASE("a name that SQLite would take for memory is a file like any other") {
  file_world world;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(world.directory);
  { CHECK(world.open_at(":memory:")); }
  std::filesystem::current_path(before);
  CHECK(std::filesystem::exists(world.directory / ":memory:"));
}

TEST_CASE("damage is an error that names the record") {
  file_world world;
  {
    const auto store = world.open();
    for (std::uint64_t number = 1; number <= 3; ++number)
      REQUIRE(append(world, **store, numbered_record(number)));
  }
  const auto error_after = [&world](const char* sql) {
    world.execute(sql);
    return error_text(world, world.file(), errc::invalid);
  };
  SUBCASE("a changed byte") {
    const auto what =
        error_after("UPDATE records SET message = CAST(substr(message, 1, 40) || x'ff' || "
                    "substr(message, 42) AS BLOB) WHERE number = 2");
    CHECK(contains(what, "record 2 is damaged: its checksum does not match"));
  }
  SUBCASE("a record that went missing") {
    CHECK(contains(error_after("DELETE FROM records WHERE number = 2"), "record 2 is missing"));
  }
  SUBCASE("a record that is another one's") {
    CHECK(contains(error_after("UPDATE records SET (checksum, message) = (SELECT checksum, "
                               "message FROM records WHERE number = 1) WHERE number = 3"),
                   "record 3 is damaged: its checksum does not match"));
  }
}

TEST_CASE(
    "a disk without room refuses the record, keeps the others, and goes on when there is room") {
  file_world world;
  const auto store = world.open();
  REQUIRE(append(world, **store, numbered_record(1)));

  // The kernel then refuses to let any file grow, as it does on a full disk, with another number.
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit none{4'096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const auto refused = append(world, **store, numbered_record(2, 100'000));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, ignored);

  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::unavailable);
  CHECK(contains(refused.error().what, world.file().c_str()));
  CHECK(append(world, **store, numbered_record(3)) == 2u);
  CHECK(numbers_of(*read_all(world, **store)) == std::vector<std::uint64_t>{1, 3});
}

/// The disk under a journal: how often it was asked to sync, and whether it answers.
struct slow_disk {
  std::promise<void> asked;
  std::promise<void> released;
  std::atomic<int> calls{0};

  os::sqlite_journal::sync_call sync(int number = 0) {
    return [this, number, waits = released.get_future().share()](int descriptor) {
      CHECK(::fcntl(descriptor, F_GETFD) >= 0);
      if (calls++ == 0)
        asked.set_value();
      waits.wait();
      errno = number;
      return number == 0 ? 0 : -1;
    };
  }
};

TEST_CASE("records are synced soon, and a disk that takes its time for it holds up no record") {
  file_world world;
  slow_disk disk;
  const auto store =
      os::sqlite_journal::open(world.file(), {}, os::durability::power_cut, disk.sync());
  REQUIRE(store);
  REQUIRE(append(world, **store, numbered_record(1)) == 1u);
  REQUIRE(disk.asked.get_future().wait_for(30s) == std::future_status::ready);
  CHECK(append(world, **store, numbered_record(2)) == 2u);
  CHECK(read_all(world, **store)->size() == 2);
  disk.released.set_value();
  // The log, its name in the directory, and the log again with the second record.
  CHECK(world.until([&disk] { return disk.calls >= 3; }));
}

TEST_CASE("a disk that has lost a record is not trusted with the next") {
  file_world world;
  slow_disk disk;
  disk.released.set_value();
  const auto store =
      os::sqlite_journal::open(world.file(), {}, os::durability::power_cut, disk.sync(EIO));
  REQUIRE(store);
  REQUIRE(append(world, **store, numbered_record(1)));
  std::uint64_t number = 1;
  result<std::uint64_t> refused;
  REQUIRE(
      world.until([&] { return !(refused = append(world, **store, numbered_record(++number))); }));
  CHECK(contains(refused.error().what, "the disk did not take it: Input/output error"));
}

TEST_CASE("more records than may wait are refused in their turn, none is lost or reordered") {
  file_world world;
  const auto store = world.open();
  REQUIRE(store);
  std::promise<void> hold;
  const auto held = hold.get_future().share();
  // The store's thread waits in this answer while the queue fills.
  std::promise<void> holding;
  (*store)->append(numbered_record(1), [held, &holding](const result<std::uint64_t>&) {
    holding.set_value();
    held.wait();
  });
  holding.get_future().wait();
  std::vector<result<std::uint64_t>> answers;
  std::promise<void> last;
  constexpr auto count = limits::journal_queue_max + 10;
  for (std::size_t i = 0; i < count; ++i)
    (*store)->append(numbered_record(2 + i), [&answers, &last](const result<std::uint64_t>& index) {
      answers.push_back(index);
      if (answers.size() == count)
        last.set_value();
    });
  hold.set_value();
  last.get_future().wait();
  for (std::size_t i = 0; i < count; ++i) {
    const bool fits = i < limits::journal_queue_max;
    REQUIRE(answers[i].has_value() == fits);
    if (fits)
      CHECK(*answers[i] == i + 2);
    else
      CHECK(answers[i].error().code == errc::overloaded);
  }
}

TEST_CASE(
    "what was acknowledged survives a kill, and a log torn anywhere leaves a beginning of it") {
  file_world world;
  // exec: the pid that the shell prints is the writer's.
  const auto command = std::string("echo $$; exec " TROUPE_JOURNAL_PROBE " ") + world.file();
  FILE* writer = ::popen(command.c_str(), "r");
  REQUIRE(writer != nullptr);
  int pid = 0;
  REQUIRE(std::fscanf(writer, "%d", &pid) == 1);
  std::uint64_t acknowledged = 0;
  unsigned long long number = 0;
  while (acknowledged < 50 && std::fscanf(writer, "%llu", &number) == 1)
    acknowledged = number;
  REQUIRE(acknowledged == 50);
  REQUIRE(::kill(pid, SIGKILL) == 0);
  while (std::fscanf(writer, "%llu", &number) == 1)
    acknowledged = number;
  ::pclose(writer);

  const auto log = world.file() + "-wal";
  const auto file_bytes = bytes_of(world.file());
  const auto log_bytes = bytes_of(log);
  REQUIRE_FALSE(log_bytes.empty());
  {
    const auto store = world.open();
    REQUIRE(store);
    const auto all = read_all(world, **store);
    REQUIRE(all);
    CHECK(all->size() >= acknowledged);
    CHECK(numbers_of(*all).back() == all->size());
  }
  std::size_t before = 0;
  for (std::size_t cut = 60'001; cut < log_bytes.size(); cut += log_bytes.size() / 13) {
    std::ofstream(world.file(), std::ios::binary) << file_bytes;
    std::ofstream(log, std::ios::binary) << log_bytes.substr(0, cut);
    const auto store = world.open();
    REQUIRE(store);
    const auto all = read_all(world, **store);
    REQUIRE(all);
    CHECK(all->size() >= before);
    before = all->size();
  }
  CHECK(before > 0);
}
