#include "ckpt/catalog/shard_files.hpp"

#include "ckpt/catalog/testing/place_node.hpp"
#include "ckpt/snapshot/testing/file_snapshot.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;
using ports::testing::memory_place;
using ports::testing::memory_storage;
using testing::file_snapshot;
using node = testing::place_node;

namespace {

persist_request files_of(std::uint64_t step, std::uint32_t shard, std::uint32_t shards) {
  auto w = node::snapshot(step, shard, shards);
  w.to.file = list_name(shard);
  return w;
}

/// A step of two shards with two files each, complete.
struct two_shards {
  memory_place place;
  node n{place};
  std::vector<std::string> snapshots{
      file_snapshot::of({{"__0_0.distcp", "shard 0"}, {".metadata", "all"}}),
      file_snapshot::of({{"__1_0.distcp", "shard 1"}, {"more/x.bin", std::string(5000, 'x')}})};

  two_shards() {
    std::vector<shard> written;
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto put = n.put(files_of(10, i, 2), snapshots[i]);
      REQUIRE_MESSAGE(put, put.error().what);
      written.push_back(*put);
    }
    REQUIRE(n.commit(node::order(files_of(10, 0, 2), written)));
  }
  result<std::string> loaded(std::uint32_t number) {
    memory_storage storage(place);
    const auto catalog = step_catalog::open(storage).value();
    const auto* found = catalog.newest();
    REQUIRE(found != nullptr);
    const auto& which = found->says.shards.at(number);
    const auto bytes = memory_of(storage, *found, which);
    if (!bytes)
      return tl::make_unexpected(bytes.error());
    std::string into(*bytes, '?');
    auto got = load_shard(storage, *found, which,
                          {reinterpret_cast<std::byte*>(into.data()), into.size()}, never_stops);
    if (!got)
      return tl::make_unexpected(got.error());
    return into;
  }
  std::string why_not(std::uint32_t number) {
    const auto got = loaded(number);
    return got ? "" : got.error().what;
  }
};

} // namespace

TEST_CASE("each file of a shard lies in the step's directory under its own name") {
  two_shards s;
  CHECK(s.place.files.at("10/__0_0.distcp") == "shard 0");
  CHECK(s.place.files.at("10/.metadata") == "all");
  CHECK(s.place.files.at("10/__1_0.distcp") == "shard 1");
  CHECK(s.place.files.at("10/more/x.bin") == std::string(5000, 'x'));
  CHECK(s.place.files.count("10/troupe-files-00001") == 1);
}

TEST_CASE("a shard comes back as the very snapshot that was written") {
  two_shards s;
  CHECK(s.loaded(0).value() == s.snapshots[0]);
  CHECK(s.loaded(1).value() == s.snapshots[1]);
}

TEST_CASE("a file that is damaged, cut or gone is named") {
  two_shards s;
  SUBCASE("damaged") {
    s.place.files.at("10/more/x.bin")[100] = 'y';
    CHECK(s.why_not(1).find("'10/more/x.bin' is damaged") != std::string::npos);
  }
  SUBCASE("cut") {
    s.place.files.at("10/more/x.bin").resize(10);
    CHECK(s.why_not(1).find("'10/more/x.bin' has 10 bytes") != std::string::npos);
  }
  SUBCASE("longer") {
    s.place.files.at("10/__1_0.distcp") += std::string(9000, '+');
    CHECK(s.why_not(1).find("'10/__1_0.distcp'") != std::string::npos);
  }
  SUBCASE("gone") {
    s.place.files.erase("10/__1_0.distcp");
    CHECK(s.why_not(1).find("10/__1_0.distcp") != std::string::npos);
  }
  SUBCASE("its list is damaged") {
    s.place.files.at("10/troupe-files-00001")[30] ^= 1;
    CHECK(s.why_not(1).find("'10/troupe-files-00001' is damaged") != std::string::npos);
  }
  CHECK(s.loaded(0).value() == s.snapshots[0]);
}

TEST_CASE("a list is put last, so a step that is cut off has none") {
  memory_place place;
  node n(place);
  place.fault = [](const char* what, const std::string& name) -> std::optional<error> {
    if (std::string(what) == "put" && name == "10/b")
      return error{errc::unavailable, "the disk is full"};
    return std::nullopt;
  };
  const auto put = n.write(files_of(10, 0, 1), file_snapshot::of({{"a", "1"}, {"b", "2"}}));
  REQUIRE(!put);
  CHECK(put.error().what == "the disk is full");
  CHECK(place.files.count("10/a") == 1);
  CHECK(place.files.count("10/troupe-files-00000") == 0);
}

TEST_CASE("several files go to a directory, and only as such") {
  memory_place place;
  node n(place);
  const auto snapshot = file_snapshot::of({{"a", "1"}});
  auto w = files_of(10, 0, 1);
  SUBCASE("not to the place itself") {
    w.to.directory = ".";
  }
  SUBCASE("not under the name of one file") {
    w.to.file = "rank_0.pt";
  }
  const auto put = n.write(w, snapshot);
  REQUIRE(!put);
  CHECK(put.error().code == errc::invalid);
}

TEST_CASE("a file whose bytes are not those of its list is not taken for written") {
  memory_place place;
  node n(place);
  auto snapshot = file_snapshot::of({{"a", "1"}});
  snapshot[0] = '2';
  const auto put = n.write(files_of(10, 0, 1), snapshot);
  REQUIRE(!put);
  CHECK(put.error().what == "'a' changed while it was written");
}

TEST_CASE(
    "files that a later life saves again as they are stay, and others are no part of the step") {
  two_shards s;
  const auto before = s.place.files;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto again = files_of(10, i, 2);
    again.made_by = generation{2};
    CHECK(s.n.put(again, s.snapshots[i]));
    const auto other = s.n.put(again, file_snapshot::of({{"__0_0.distcp", "another"}}));
    REQUIRE(!other);
    CHECK(other.error().what.find("is complete in '10' with other contents") != std::string::npos);
  }
  CHECK(s.place.files.at("10/__0_0.distcp") == before.at("10/__0_0.distcp"));
  CHECK(s.place.files.at("10/troupe-manifest.json") == before.at("10/troupe-manifest.json"));
}
