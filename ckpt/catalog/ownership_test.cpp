// Checkpoints and files of other programs at a place that Troupe saves to.
#include "ckpt/catalog/place_writer.hpp"
#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;
using ports::testing::memory_storage;

namespace {

using files = std::map<std::string, std::string>;

/// What is theirs is there as it was.
void check_untouched(const two_ranks& j, const files& theirs) {
  for (const auto& file : theirs) { // Clang takes no structured binding into doctest's lambdas.
    REQUIRE_MESSAGE(j.place.files.count(file.first) == 1, file.first);
    CHECK_MESSAGE(j.place.files.at(file.first) == file.second, file.first);
  }
}

} // namespace

TEST_CASE("files of others are never looked at and never removed") {
  two_ranks j;
  j.keep = {1, 0};
  const files theirs = {{"5/rank_0.pt", "theirs"},       {"15/model.bin", "theirs"},
                        {"best/model.pt", "theirs"},     {"notes.txt", "theirs"},
                        {".troupe/steps/007", "theirs"}, {".troupe/steps/x", "theirs"}};
  j.place.files = theirs;
  auto catalog = j.opened();
  CHECK(catalog.steps().empty());
  REQUIRE(j.save(catalog, 10));
  REQUIRE(j.save(catalog, 20));
  check_untouched(j, theirs);
}

TEST_CASE("a directory that holds files and is no step's is refused and stays as it is") {
  two_ranks j;
  j.keep = {1, 0};
  // DLRover's, a user's, and one whose only file is deep below.
  j.place.files = {{"5000/rank_0.pt", "DLRover's"},
                   {"best/model.pt", "a user's"},
                   {"7/logs/events/1", "a user's"},
                   {"dlrover_latest.txt", "5000"}};
  const auto theirs = j.place.files;
  auto catalog = j.opened();
  CHECK(catalog.newest() == nullptr);
  struct row {
    std::uint64_t step;
    const char* directory;
    const char* holds;
  };
  for (const row& r : {row{5000, "5000", "5000/rank_0.pt"}, row{8, "best", "best/model.pt"},
                       row{7, "7", "7/logs/events/1"}}) {
    const auto refused = error_of(catalog.begin(r.step, r.directory, j.next()));
    CHECK(refused.code == errc::refused);
    CHECK(refused.what == "step " + std::to_string(r.step) + " cannot be in '" + r.directory +
                              "': it holds '" + r.holds +
                              "', which no step of Troupe's has written; it stays. Save to another "
                              "directory, or move it away");
    CHECK(j.place.files == theirs);
    CHECK(catalog.find(r.step) == nullptr);
  }
  // The steps beside them are saved and go, and they stay.
  for (const std::uint64_t step : {10, 20, 30})
    REQUIRE(j.save(catalog, step));
  CHECK(j.place.files.count("20/rank_0.pt") == 0);
  check_untouched(j, theirs);
  SUBCASE("once it was moved away the step is saved") {
    REQUIRE(j.storage.remove("5000"));
    CHECK(j.complete(catalog, 5000));
    CHECK(j.place.files.at("dlrover_latest.txt") == "5000");
  }
}

TEST_CASE("a directory that another node of the same save has begun meanwhile is the step's") {
  two_ranks j;
  auto here = j.opened();
  auto there = j.opened();
  const auto id = j.next();
  // After this catalog has seen no marker the other one writes it and a shard.
  j.before("list", "10", [&] {
    REQUIRE(there.begin(10, "10", id));
    j.put(10);
  });
  REQUIRE(here.begin(10, "10", id));
  CHECK(j.commit(here, j.put(10)));
  CHECK(newest_of(j.opened()) == 10);
}

TEST_CASE("a directory that a newer save has begun meanwhile is not this save's") {
  two_ranks j;
  auto here = j.opened();
  auto there = j.opened();
  const auto older = j.next();
  j.before("list", "10", [&] { REQUIRE(j.complete(there, 10)); });
  const auto refused = error_of(here.begin(10, "10", older));
  CHECK(refused.code == errc::refused);
  CHECK(refused.what ==
        "step 10 is not of this save any more: save 2 of generation 1 has begun it again");
  CHECK(newest_of(j.opened()) == 10);
}

TEST_CASE("a tracker that names a later step of another program stays, and is told once") {
  two_ranks j;
  j.place.files = {{"5000/rank_0.pt", "DLRover's"}, {"dlrover_latest.txt", "5000"}};
  const auto theirs = j.place.files;
  auto catalog = j.opened();
  REQUIRE(j.complete(catalog, 101));
  check_untouched(j, theirs);
  CHECK(newest_of(j.opened()) == 101);
  const auto warnings = catalog.take_warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "'dlrover_latest.txt' names step 5000 in '5000', which Troupe has not "
                       "written and which is later than step 101: it stays, and readers of it do "
                       "not see Troupe's steps until one is later");
  REQUIRE(j.complete(catalog, 102));
  CHECK(catalog.take_warnings().empty());
  check_untouched(j, theirs);
  SUBCASE("an older step of theirs is followed by Troupe's") {
    REQUIRE(j.complete(catalog, 5001));
    CHECK(j.place.files.at("dlrover_latest.txt") == "5001");
    CHECK(j.place.files.at("5000/rank_0.pt") == "DLRover's");
  }
  SUBCASE("one whose step was removed names nothing any more") {
    j.place.files.erase("5000/rank_0.pt");
    REQUIRE(j.complete(catalog, 103));
    CHECK(j.place.files.at("dlrover_latest.txt") == "103");
  }
  SUBCASE("each framework's tracker is judged by itself") {
    j.whose = framework::megatron;
    REQUIRE(j.complete(catalog, 104));
    CHECK(j.place.files.at("latest_checkpointed_iteration.txt") == "104");
    CHECK(j.place.files.at("dlrover_latest.txt") == "5000");
  }
}

TEST_CASE("a tracker of another program that cannot be judged now is not replaced") {
  two_ranks j;
  j.place.files = {{"5000/rank_0.pt", "DLRover's"}, {"dlrover_latest.txt", "5000"}};
  auto catalog = j.opened();
  REQUIRE(j.begin(catalog, 101));
  const auto m = j.put(101);
  for (const char* at : {"5000", ".troupe/steps/5000"}) {
    j.fail("list", at, "input/output error");
    CHECK(error_of(j.commit(catalog, m)).what == "input/output error");
    CHECK(j.place.files.at("dlrover_latest.txt") == "5000");
  }
  j.place.fault = nullptr;
  CHECK(j.commit(catalog, m)); // complete, and told
  CHECK(catalog.take_warnings().size() == 1);
}

TEST_CASE("a place with DLRover's checkpoints is saved to, and its user hears what it means") {
  two_ranks j;
  j.place.files = {{"5000/rank_0.pt", "DLRover's"}, {"dlrover_latest.txt", "5000"}};
  const auto theirs = j.place.files;
  place_writer writer(std::make_unique<memory_storage>(j.place), "n0");
  const auto save = [&](std::uint64_t step) -> result<completed> {
    persist_request w;
    w.step = step;
    w.made_by = generation{1};
    w.save = step;
    w.to = {"/place", std::to_string(step), "rank_0.pt", framework::ddp, 0, 1, {1, 0}, 1s};
    commit_order order;
    order.to = w.to;
    return writer.write(w, ports::bytes_of("ours"), ports::never_stops).and_then([&](auto written) {
      order.says.step = step;
      order.says.made_by = w.made_by;
      order.says.save = w.save;
      order.says.shards = {{"rank_0.pt", written, "n0"}};
      auto done = writer.commit(order);
      writer.retain({order.to, {order.says.id(), w.id()}});
      return done;
    });
  };
  const auto first = save(101);
  REQUIRE(first);
  REQUIRE(first->warnings.size() == 1);
  CHECK(first->warnings[0].find("'dlrover_latest.txt' names step 5000") == 0);
  CHECK(save(102).value().warnings.empty());
  CHECK(error_of(save(5000)).code == errc::refused);
  check_untouched(j, theirs);
  CHECK(j.place.files.count("102/rank_0.pt") == 1);
}
