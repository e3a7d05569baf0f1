#include "runtime/os/journal/journal_file.hpp"

#include "messages/kinds.hpp"
#include "tests/journal/journal_contract.hpp"

#include <boost/crc.hpp>
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <sys/resource.h>

using namespace troupe;
using namespace troupe::os;
using testing::numbered_record;
using testing::numbers_of;

namespace {

struct place {
  place() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-journal-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~place() { std::filesystem::remove_all(directory); }

  std::string file() const { return (directory / "journal").string(); }
  result<journal_file> open(const std::string& job = "job",
                            std::optional<std::uint64_t> run = 1) const {
    return journal_file::open(file(), {job, run}, durability::process);
  }

  std::filesystem::path directory;
};

messages::any_msg proposed(std::uint64_t g) {
  return messages::build<messages::GenerationProposed>({"test", term{1}, generation{g}, g, 0},
                                                       [g](auto b) { b.setGeneration(g); })
      .any();
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

/// What a master that was killed leaves: its log is not moved to the file.
std::map<std::filesystem::path, std::string> files_in(const std::filesystem::path& directory) {
  std::map<std::filesystem::path, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    all[entry.path()] = bytes_of(entry.path());
  return all;
}

void put_back(const std::map<std::filesystem::path, std::string>& files) {
  for (const auto& [file, bytes] : files)
    put(file, bytes);
}

/// As version 1 wrote it.
void make_version_1(const std::string& path, const std::vector<messages::any_msg>& records) {
  auto db = database::open(path);
  REQUIRE(db);
  REQUIRE(db->run("PRAGMA journal_mode = WAL;"
                  "CREATE TABLE records (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,"
                  " message BLOB NOT NULL) STRICT;"
                  "PRAGMA application_id = 0x54525550; PRAGMA user_version = 1;"
                  "CREATE TABLE opened (epoch INTEGER PRIMARY KEY) STRICT;"
                  "INSERT INTO opened VALUES (9000000000000000)"));
  auto row = statement::prepare(*db, "INSERT INTO records VALUES (?, ?, ?)");
  REQUIRE(row);
  std::int64_t number = 0;
  for (const auto& record : records) {
    const auto bytes = record.words().asBytes();
    boost::crc_32_type crc;
    crc.process_bytes(bytes.begin(), bytes.size());
    row->bind(1, ++number);
    row->bind(2, static_cast<std::int64_t>(crc.checksum()));
    row->bind(3, bytes.begin(), bytes.size());
    REQUIRE(row->step());
    row->reset();
  }
}

struct no_room {
  no_room() : ignored(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit none{4'096, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  }
  ~no_room() {
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, ignored);
  }
  rlimit before{};
  void (*ignored)(int);
};

} // namespace

TEST_CASE("a journal of another job is refused, and not a byte of it is changed") {
  place at;
  std::map<std::filesystem::path, std::string> left;
  {
    auto file = at.open("mine");
    REQUIRE(file);
    REQUIRE(file->append({proposed(1), proposed(2)}));
    left = files_in(at.directory);
  }
  put_back(left);
  const auto refused = at.open("yours");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("it belongs to job 'mine', and this is job 'yours'") !=
        std::string::npos);
  CHECK(files_in(at.directory) == left);
  CHECK(at.open("mine")->read()->size() == 2);
}

TEST_CASE("a run that concluded is followed by a new one, under the next term") {
  place at;
  term before;
  {
    auto file = at.open("job", 1);
    REQUIRE(file);
    before = file->opened_as();
    REQUIRE(file->append({proposed(1), numbered_record(2)}));
  }
  {
    auto successor = at.open("job", 1);
    REQUIRE(successor);
    CHECK(successor->read()->size() == 2);
  }
  auto next = at.open("job", 2);
  REQUIRE(next);
  CHECK(next->opened_as() > before);
  CHECK(next->read()->empty());
  REQUIRE(next->notices().size() == 1);
  CHECK(next->notices()[0].name == std::string("journal_begun_anew"));
  REQUIRE(next->append({proposed(1)}));
  CHECK(next->read()->size() == 1);
}

TEST_CASE("a journal of version 1 is taken up: its records, its term, its verdict") {
  place at;
  SUBCASE("a job that has not concluded goes on") {
    make_version_1(at.file(), {proposed(1), proposed(2)});
    {
      auto file = at.open();
      REQUIRE(file);
      CHECK(file->opened_as() == term{9000000000000001});
      CHECK(numbers_of(*file->read()) == std::vector<std::uint64_t>{1, 2});
      REQUIRE(file->append({proposed(3)}));
    }
    CHECK(at.open()->read()->size() == 3);
    CHECK_FALSE(at.open("another"));
  }
  SUBCASE("one that has concluded begins anew") {
    make_version_1(at.file(), {numbered_record(1)});
    CHECK(at.open()->read()->empty());
  }
  SUBCASE("one that is damaged is refused, and stays as it is") {
    make_version_1(at.file(), {proposed(1)});
    auto db = database::open(at.file());
    REQUIRE(db->run("UPDATE records SET checksum = 1; PRAGMA wal_checkpoint(TRUNCATE)"));
    db = database::open(at.file() + "-other");
    const auto refused = at.open();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("record 1 is damaged") != std::string::npos);
  }
}

TEST_CASE("a journal that a flipped bit in its log has shortened says what is gone") {
  place at;
  std::map<std::filesystem::path, std::string> left;
  {
    auto file = at.open();
    REQUIRE(file);
    for (std::uint64_t n = 1; n <= 20; ++n)
      REQUIRE(file->append({proposed(n)}));
    left = files_in(at.directory);
  }
  const std::filesystem::path log = at.file() + "-wal";
  REQUIRE(left.at(log).size() > 40'000);
  std::size_t shortened = 0;
  for (std::size_t at_byte = 100; at_byte < left.at(log).size(); at_byte += 3'001) {
    CAPTURE(at_byte);
    auto damaged = left;
    damaged[log][at_byte] = static_cast<char>(damaged[log][at_byte] ^ 4);
    put_back(damaged);
    auto file = at.open();
    REQUIRE(file);
    const auto there = file->read()->size();
    REQUIRE(file->notices().size() == (there < 20 ? 1 : 0));
    if (there == 20)
      continue;
    ++shortened;
    CHECK(file->notices()[0].text.find("its last " + std::to_string(20 - there) +
                                       " record(s) are gone") != std::string::npos);
    // Told once; what comes now is counted from here.
    REQUIRE(file->append({proposed(21)}));
    CHECK(file->read()->size() == there + 1);
  }
  CHECK(shortened > 5);
}

TEST_CASE("records that were dropped leave a whole journal, and what follows is counted on") {
  place at;
  {
    auto file = at.open();
    REQUIRE(file);
    for (std::uint64_t n = 1; n <= 9; ++n)
      REQUIRE(file->append({proposed(n)}));
    auto all = *file->read();
    REQUIRE(file->replace({all[3], all[8]}));
    CHECK(numbers_of(*file->read()) == std::vector<std::uint64_t>{4, 9});
    REQUIRE(file->append({proposed(10)}));
    CHECK(file->last() == 10);
  }
  auto again = at.open();
  REQUIRE(again);
  CHECK(again->notices().empty());
  CHECK(numbers_of(*again->read()) == std::vector<std::uint64_t>{4, 9, 10});
}

TEST_CASE("a file does not grow with what was dropped") {
  place at;
  auto file = at.open();
  REQUIRE(file);
  for (int round = 0; round < 60; ++round) {
    for (std::uint64_t n = 1; n <= 50; ++n)
      REQUIRE(file->append({numbered_record(n, 15'000)}));
    REQUIRE(file->replace({file->read()->back()}));
  }
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(at.directory))
    bytes += entry.file_size();
  CHECK(bytes < 30u << 20); // 45 MB went through it
}

TEST_CASE(
    "a successor on a full disk goes on with what it reads, and is known once there is room") {
  place at;
  {
    auto file = at.open();
    REQUIRE(file);
    REQUIRE(file->append({proposed(1)}));
  }
  term second;
  {
    std::optional<result<journal_file>> file;
    {
      const no_room full;
      file = at.open();
      REQUIRE(*file);
      CHECK((*file)->read()->size() == 1);
      CHECK((*file)->append({numbered_record(2, 100'000)}).error().code == errc::unavailable);
    }
    second = (*file)->opened_as();
    REQUIRE((*file)->append({proposed(2)}));
  }
  auto third = at.open();
  REQUIRE(third);
  CHECK(third->opened_as() > second);
  CHECK(numbers_of(*third->read()) == std::vector<std::uint64_t>{1, 2});
}
