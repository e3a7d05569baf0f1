#include "tests/storage/storage_contract.hpp"

#include "runtime/base/random.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <cstring>

namespace troupe::testing {

namespace {

using ports::bytes_of;
using ports::never_stops;

constexpr std::size_t page = 4'096;

std::vector<std::string> names(ports::storage& storage, const std::string& below = "") {
  const auto listed = storage.list(below);
  REQUIRE_MESSAGE(listed, listed.error().what);
  std::vector<std::string> found;
  for (const auto& file : *listed)
    found.push_back(file.name);
  return found;
}

void put_and_get(const storage_place& place) {
  const auto storage = place.open();
  SUBCASE("what was put is got, with its size and checksum, whatever its size and alignment") {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1,
                                   5 * page, 40 * page + 17, 100 * page}) {
      for (const std::size_t offset : {0, 1}) {
        const sample bytes(size + offset, size);
        const auto view = bytes.from(offset);
        const auto put = storage->put("some/file", view, never_stops);
        REQUIRE_MESSAGE(put, put.error().what);
        CHECK(put->bytes == size);
        CHECK(put->crc32 == libdeflate_crc32(0, view.data, view.size));
        sample into(size + 10, 0);
        const auto got = place.open()->get(
            "some/file", {const_cast<std::byte*>(into.view().data), size + 10}, never_stops);
        REQUIRE_MESSAGE(got, got.error().what);
        CHECK(*got == *put);
        CHECK(std::memcmp(into.view().data, view.data, size) == 0);
        CHECK(storage->list("some")->at(0).bytes == size);
      }
    }
  }
  SUBCASE("a file takes the place of an earlier one, larger or smaller") {
    for (const std::size_t size : {20 * page, page / 2, 30 * page + 1}) {
      REQUIRE(storage->put("file", sample(size, size).view(), never_stops));
      CHECK(content_of(*storage, "file") == sample(size, size).text());
    }
    CHECK(names(*storage) == std::vector<std::string>{"file"});
  }
  SUBCASE("small files") {
    REQUIRE(storage->replace("latest", "100"));
    REQUIRE(storage->replace("latest", "7"));
    CHECK(*storage->get_small("latest", 1) == "7");
    REQUIRE(storage->replace("deep/er/latest", ""));
    CHECK(storage->get_small("deep/er/latest", 0)->empty());
  }
}

void refusals(const storage_place& place) {
  const auto storage = place.open();
  const auto code = [](const auto& answer) {
    REQUIRE_FALSE(answer);
    return answer.error().code;
  };
  SUBCASE("names that are none") {
    for (const char* name : {"", "/etc/passwd", "a/../b", "..", ".", "a//b", "a/", "./a",
                             ".troupe-part-1", "a/.troupe-part-0"}) {
      CHECK(code(storage->put(name, bytes_of("x"), never_stops)) == errc::invalid);
      CHECK(code(storage->get_small(name, 10)) == errc::invalid);
      CHECK(code(storage->replace(name, "x")) == errc::invalid);
      CHECK(code(storage->remove(name)) == errc::invalid);
      if (*name != '\0')
        CHECK(code(storage->list(name)) == errc::invalid);
    }
    CHECK(code(storage->replace(std::string(256, 'a'), "x")) == errc::invalid);
    CHECK(code(storage->replace(std::string("a\0b", 3), "x")) == errc::invalid);
    CHECK(names(*storage).empty());
  }
  SUBCASE("what is not there is named") {
    const auto got = storage->get_small("no/such", 10);
    CHECK(code(got) == errc::absent);
    CHECK(got.error().what.find("no/such") != std::string::npos);
  }
  SUBCASE("a file that is larger than its reader's room") {
    REQUIRE(storage->replace("file", "12345"));
    CHECK(code(storage->get_small("file", 4)) == errc::invalid);
    std::array<std::byte, 4> room{};
    CHECK(code(storage->get("file", {room.data(), room.size()}, never_stops)) == errc::invalid);
  }
  SUBCASE("a file where a directory is, and the other way round") {
    REQUIRE(storage->replace("a/b", "1"));
    CHECK(code(storage->replace("a", "2")) == errc::refused);
    CHECK(code(storage->replace("a/b/c", "2")) == errc::refused);
    CHECK(*storage->get_small("a/b", 10) == "1");
  }
  SUBCASE("an operation that is told to stop does, and what was there is there") {
    REQUIRE(storage->replace("file", "before"));
    const std::atomic<bool> stop{true};
    CHECK(code(storage->put("file", sample(50 * page).view(), stop)) == errc::closed);
    std::array<std::byte, 10> room{};
    CHECK(code(storage->get("file", {room.data(), room.size()}, stop)) == errc::closed);
    CHECK(*storage->get_small("file", 10) == "before");
    CHECK(names(*storage) == std::vector<std::string>{"file"});
  }
}

void listing_and_removing(const storage_place& place) {
  const auto storage = place.open();
  CHECK(names(*storage).empty());
  CHECK(names(*storage, "no/such").empty());
  for (const char* name : {"100/rank_1.pt", "100/rank_0.pt", "100/.hidden", "1000/rank_0.pt",
                           "100x", "latest", "100/below/it"})
    REQUIRE(storage->replace(name, name));
  SUBCASE("all, sorted, and what is below a directory only") {
    CHECK(names(*storage, "100") == std::vector<std::string>{"100/.hidden", "100/below/it",
                                                             "100/rank_0.pt", "100/rank_1.pt"});
    CHECK(names(*storage).size() == 7);
    CHECK(storage->list("")->back().bytes == 6);
  }
  SUBCASE("a file is listed itself, and there is nothing below it") {
    CHECK(names(*storage, "latest") == std::vector<std::string>{"latest"});
    CHECK(storage->list("100/below/it")->at(0).bytes == 12);
    CHECK(names(*storage, "latest/below").empty());
    CHECK(names(*storage, "100/rank_1.pt/below/it").empty());
  }
  SUBCASE("one file") {
    REQUIRE(storage->remove("100/rank_0.pt"));
    REQUIRE(storage->remove("100/rank_0.pt"));
    CHECK(names(*storage).size() == 6);
  }
  SUBCASE("a directory with all below it, and its like are left") {
    REQUIRE(storage->remove("100"));
    REQUIRE(storage->remove("no/such/thing"));
    CHECK(names(*storage) == std::vector<std::string>{"1000/rank_0.pt", "100x", "latest"});
    REQUIRE(storage->replace("100/rank_0.pt", "again"));
    CHECK(names(*storage, "100").size() == 1);
  }
  SUBCASE("two look at one place, and a directory that one removed the other makes again") {
    const auto other = place.open();
    REQUIRE(storage->replace("200/a", "1"));
    REQUIRE(other->remove("200"));
    REQUIRE(storage->replace("200/a", "2"));
    CHECK(*other->get_small("200/a", 9) == "2");
  }
}

} // namespace

sample::sample(std::size_t size, std::uint64_t number)
    : memory_(std::make_unique<std::byte[]>(size + 2 * page)), size_(size) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  data_ = memory_.get() + (page - address % page) % page;
  random_source random(number + 1);
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const auto word = random.next();
    std::memcpy(data_ + at, &word, std::min(sizeof word, size - at));
  }
}

std::string content_of(ports::storage& storage, const std::string& name) {
  const auto content = storage.get_small(name, 64u << 20);
  return content ? *content : "error: " + content.error().what;
}

void check_storage_contract(const std::function<storage_place()>& make) {
  SUBCASE("put and get") {
    put_and_get(make());
  }
  SUBCASE("refusals") {
    refusals(make());
  }
  SUBCASE("listing and removing") {
    listing_and_removing(make());
  }
  const auto described = make().open()->describe();
  CHECK_FALSE(described.empty());
}

} // namespace troupe::testing
