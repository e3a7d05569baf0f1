#include "ckpt/snapshot/archive.hpp"

#include "ckpt/snapshot/bytes.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>

using namespace troupe::ckpt;

// torch.load itself reads these archives in tests/conformance/test_archive.py.

namespace {

using contents = std::vector<std::pair<std::string, std::string>>;

std::vector<record> records_of(const contents& all) {
  std::vector<record> records;
  for (const auto& [name, data] : all)
    records.push_back({name, data.size()});
  return records;
}

/// `before`: what the memory holds.
std::string snapshot_of(const contents& all, char before = '?') {
  const archive_layout layout("archive", records_of(all));
  std::string snapshot(layout.bytes(), before);
  layout.write_frame(snapshot.data());
  for (std::size_t i = 0; i < all.size(); ++i)
    snapshot.replace(layout.data_of(i), all[i].second.size(), all[i].second);
  return snapshot;
}

std::string sealed(const contents& all) {
  auto snapshot = snapshot_of(all);
  REQUIRE(seal(snapshot.data(), snapshot.size()));
  return snapshot;
}

const contents some = {{"data.pkl", "\x80\x02."},
                       {"data/0", std::string(1000, 'x')},
                       {"data/1", ""},
                       {"data/2", std::string(64, 'y')},
                       {"version", "3\n"}};

std::string told(const troupe::result<void>& r) {
  return r ? "" : r.error().what;
}

} // namespace

TEST_CASE("what goes in is found again, aligned, and every byte of the image is written") {
  CHECK(snapshot_of(some, '?') == snapshot_of(some, '!'));
  const auto snapshot = sealed(some);
  const auto entries = read_archive(snapshot);
  REQUIRE(entries);
  REQUIRE(entries->size() == some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    const auto& e = (*entries)[i];
    CHECK(e.name == "archive/" + some[i].first);
    CHECK(e.data % archive_layout::alignment == 0);
    CHECK(snapshot.substr(e.data, e.bytes) == some[i].second);
  }
  CHECK(told(verify(snapshot)) == "");
}

TEST_CASE("the CRC-32 of the format's own example stands in the directory and behind the data") {
  const auto snapshot = sealed({{"check", "123456789"}}); // the check value of every CRC catalogue
  const auto entries = read_archive(snapshot);
  REQUIRE(entries);
  const auto& e = entries->front();
  CHECK(e.crc == 0xcbf43926);
  CHECK(take<std::uint32_t>(snapshot, e.crc_behind_data_at) == 0xcbf43926);
}

TEST_CASE("an archive of no records is one") {
  const auto snapshot = sealed({});
  REQUIRE(read_archive(snapshot));
  CHECK(read_archive(snapshot)->empty());
}

TEST_CASE("sizes and places of 4 GiB and more stand in extensions") {
  constexpr std::uint64_t gib = 1u << 30;
  const archive_layout layout("archive",
                              {{"a", 3 * gib}, {"b", 2 * gib}, {"c", 5 * gib}, {"d", 1}});
  CHECK(layout.data_of(1) ==
        3 * gib + 64 + 64); // a's header and padding; its descriptor, b's header
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(layout.data_of(i) % archive_layout::alignment == 0);
  CHECK(layout.data_of(3) > 10 * gib);
  CHECK(layout.bytes() > layout.data_of(3));
}

TEST_CASE("what is not sealed, and what was changed, is noticed by name") {
  auto snapshot = snapshot_of(some);
  CHECK(told(verify(snapshot)).find("archive/data.pkl is damaged") == 0);
  snapshot = sealed(some);
  const auto entries = read_archive(snapshot);
  REQUIRE(entries);
  snapshot[(*entries)[3].data + 63] ^= 1;
  CHECK(told(verify(snapshot)).find("archive/data/2 is damaged") == 0);
}

TEST_CASE("an image that was cut off anywhere is no archive") {
  const auto snapshot = sealed(some);
  for (std::size_t bytes = 0; bytes < snapshot.size(); ++bytes)
    CHECK_FALSE(read_archive(std::string_view(snapshot).substr(0, bytes)));
}

TEST_CASE("any byte may be wrong: either it is noticed, or nothing of what is read has changed") {
  const auto snapshot = sealed(some);
  for (std::size_t at = 0; at < snapshot.size(); ++at)
    for (const char flip : {1, 0x80, 0xff}) {
      auto other = snapshot;
      other[at] = static_cast<char>(other[at] ^ flip);
      if (!verify(other))
        continue;
      const auto entries = read_archive(other);
      REQUIRE(entries);
      for (std::size_t i = 0; i < entries->size(); ++i)
        CHECK(std::string_view(other).substr((*entries)[i].data, (*entries)[i].bytes) ==
              some[i].second);
    }
}

TEST_CASE("no image can make us write or read outside of it") {
  std::mt19937_64 chance(7);
  const auto snapshot = sealed(some);
  for (int round = 0; round < 20'000; ++round) {
    auto other = snapshot;
    // The last 400 bytes are directory and ends, where positions are.
    for (int i = 0; i < 4; ++i)
      other[other.size() - 1 - chance() % 400] = static_cast<char>(chance());
    // On the heap in its own size: the address sanitizer sees the first byte outside.
    const std::unique_ptr<char[]> exact(new char[other.size()]);
    std::memcpy(exact.get(), other.data(), other.size());
    if (seal(exact.get(), other.size()))
      CHECK(read_archive({exact.get(), other.size()}));
  }
}
