#include "ckpt/snapshot/file_list.hpp"

#include "ckpt/snapshot/bytes.hpp"
#include "ckpt/snapshot/testing/file_snapshot.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <algorithm>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using testing::file_snapshot;

namespace {

/// In which all may be wrong but the checksum of the list.
std::string text_of(const file_list& list) {
  std::string text(list.bytes(), '?');
  write_list(text.data(), list);
  return text;
}

file_list two_files() {
  file_list list;
  list.files = {{"a", 0, 4096, 1}, {"b/c", 8192, 10, 2}};
  list.archives = {{0, 100}, {128, 3968}, {8192, 10}};
  list.begin = 12288;
  return list;
}

std::string why_not(const file_list& list) {
  const auto read = list_of(text_of(list));
  return read ? "" : read.error().what;
}

} // namespace

TEST_CASE("a list is read as it was written") {
  const auto list = two_files();
  REQUIRE(check(list));
  const auto read = list_of(text_of(list));
  REQUIRE(read);
  CHECK(read->begin == list.begin);
  REQUIRE(read->files.size() == 2);
  CHECK(read->files[1].name == "b/c");
  CHECK(read->files[1].begin == 8192);
  CHECK(read->files[1].bytes == 10);
  CHECK(read->files[1].crc32 == 2);
  REQUIRE(read->archives.size() == 3);
  CHECK(read->archives[1].begin == 128);
  CHECK(read->archives[1].bytes == 3968);
}

TEST_CASE("no byte of a list can change unseen, nor can it be cut") {
  const auto text = text_of(two_files());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto changed = text;
    changed[i] ^= 0x10;
    const auto read = list_of(changed);
    CHECK_MESSAGE(!read, "byte ", i);
  }
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    CHECK(!list_of(std::string_view(text).substr(0, bytes)));
}

TEST_CASE("what does not fit is named, though the checksum is right") {
  auto list = two_files();
  SUBCASE("files that overlap") {
    list.files[1].begin = 0;
    CHECK(why_not(list).find("'b/c' does not lie where a file can") != std::string::npos);
  }
  SUBCASE("a file behind the list") {
    list.files[1].bytes = 5000;
    CHECK(why_not(list).find("'b/c' does not lie where a file can") != std::string::npos);
  }
  SUBCASE("a size that wraps around") {
    list.files[1].bytes = ~std::uint64_t{0};
    CHECK(!why_not(list).empty());
  }
  SUBCASE("an archive across two files") {
    list.archives[1].bytes = 8192;
    CHECK(why_not(list).find("the archive at 128 lies in no file") != std::string::npos);
  }
  SUBCASE("archives that overlap") {
    list.archives[1].begin = 64;
    CHECK(!why_not(list).empty());
  }
  SUBCASE("a name that leaves the directory") {
    list.files[0].name = "../../etc/passwd";
    CHECK(why_not(list).find("is no name for a stored file") != std::string::npos);
  }
  SUBCASE("another version") {
    auto text = text_of(list);
    put(text.data() + 8, std::uint32_t{2});
    const auto covered = text.size() - 12;
    put(text.data() + covered, libdeflate_crc32(0, text.data(), covered));
    CHECK(list_of(text).error().what.find(
              "its list of files is of version 2, and this program reads 1") != std::string::npos);
  }
  SUBCASE("more files than it has") {
    auto text = text_of(list);
    put(text.data() + 12, std::uint32_t{1} << 31);
    const auto covered = text.size() - 12;
    put(text.data() + covered, libdeflate_crc32(0, text.data(), covered));
    CHECK(list_of(text).error().what.find("it has not what it counts") != std::string::npos);
  }
}

TEST_CASE("a snapshot says whether it has a list, and its list where it is") {
  const auto snapshot = file_snapshot::of({{"a", "one"}, {"b", "two"}});
  CHECK(has_file_list(snapshot));
  CHECK(list_in(snapshot)->begin == 2 * file_list::file_alignment);
  CHECK(!list_in("?" + snapshot)); // it says another place
  CHECK(!has_file_list("a file of torch.save"));
  CHECK(!has_file_list(""));
}

TEST_CASE("the list of a shard has a name of its own") {
  CHECK(list_name(0) == "troupe-files-00000");
  CHECK(list_name(123456) == "troupe-files-123456");
  CHECK(is_list_name(list_name(7)));
  CHECK(!is_list_name("troupe-manifest.json"));
  CHECK(!is_list_name("__0_0.distcp"));
}
