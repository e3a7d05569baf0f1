// A catalog is opened while another process completes steps and removes others.
#include "ckpt/catalog/testing/two_ranks.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

/// A place with the complete step 10, and a saver that keeps one.
struct saved_once : two_ranks {
  saved_once() : saver(opened()) {
    keep = {1, 0};
    REQUIRE(save(saver, 10));
  }
  step_catalog saver;
};

} // namespace

TEST_CASE("a step that is replaced by a newer one while it is read: the newer one is found") {
  saved_once j;
  const auto newer = [&j] { REQUIRE(j.save(j.saver, 20)); };
  SUBCASE("after the markers were listed") {
    j.before("get", ".troupe/steps/10", newer);
  }
  SUBCASE("after its marker was read") {
    j.before("get", "10/troupe-manifest.json", newer);
  }
  SUBCASE("after its manifest was read") {
    j.before("list", "10", newer);
  }
  const auto found = j.opened();
  CHECK(newest_of(found) == 20);
  CHECK(found.steps().size() == 1);
  CHECK_FALSE(j.place.fault); // it has happened
}

TEST_CASE("also while its removal is only begun, or ended on the way") {
  saved_once j;
  const auto stops_at = [&j](const std::string& at) {
    j.before("get", ".troupe/steps/10", [&j, at] {
      j.fail("remove", at);
      REQUIRE(j.save(j.saver, 20)->not_removed);
      j.place.fault = nullptr;
    });
  };
  SUBCASE("after the manifest") {
    stops_at("10");
  }
  SUBCASE("before the marker") {
    stops_at(".troupe/steps/10");
  }
  const auto found = j.opened();
  CHECK(newest_of(found) == 20);
  REQUIRE(found.find(10) != nullptr);
  CHECK(found.find(10)->state == step_state::incomplete);
}

TEST_CASE("a job that went back completes a lower step, and the higher one goes") {
  saved_once j;
  REQUIRE(j.begin(j.saver, 5)); // listed, and read before it is complete
  j.before("get", ".troupe/steps/10", [&] {
    REQUIRE(j.commit(j.saver, j.put(5)));
    REQUIRE(j.saver.retain(j.keep, {j.last, j.last}).removed.size() == 1);
  });
  CHECK(newest_of(j.opened()) == 5);
}

TEST_CASE("the same where the removal stopped after the manifest") {
  saved_once j;
  REQUIRE(j.begin(j.saver, 5));
  j.before("get", ".troupe/steps/10", [&] {
    REQUIRE(j.commit(j.saver, j.put(5)));
    j.fail("remove", "10");
    REQUIRE(j.saver.retain(j.keep, {j.last, j.last}).not_removed);
    j.place.fault = nullptr;
  });
  CHECK(newest_of(j.opened()) == 5);
}

TEST_CASE("in place: shards that go while their step is read are no damage") {
  two_ranks j;
  auto saver = j.opened();
  const auto save = [&](std::uint64_t step) {
    const auto id = j.next();
    manifest m;
    m.step = step;
    m.made_by = id.made_by;
    m.save = id.number;
    const auto file = "step-" + std::to_string(step);
    REQUIRE(saver.begin(step, ".", id));
    REQUIRE(saver.claim(step, file));
    m.shards = {{file, *j.storage.put(file, ports::bytes_of("state"), ports::never_stops), "n"}};
    REQUIRE(saver.commit(m, j.whose));
    REQUIRE_FALSE(saver.retain({1, 0}, {id, id}).not_removed);
  };
  save(10);
  j.before("list", "step-10", [&] { save(20); });
  const auto found = j.opened();
  CHECK(newest_of(found) == 20);
  CHECK(found.steps().size() == 1);
}

TEST_CASE("where no step is complete none is found, and the look ends") {
  two_ranks j;
  auto saver = j.opened();
  REQUIRE(j.begin(saver, 10));
  REQUIRE(j.begin(saver, 20));
  CHECK(newest_of(j.opened()) == 0);
  CHECK(j.opened().steps().size() == 2);
  REQUIRE(j.complete(saver, 30));
  j.place.files["30/rank_0.pt"] = "!";
  const auto found = j.opened();
  CHECK(newest_of(found) == 0);
  CHECK(found.steps().at(30).state == step_state::damaged);
}

TEST_CASE("a place that never stands still is told, and not looked at for ever") {
  saved_once j;
  std::uint64_t step = 10;
  j.place.fault = [&](const char* what, const std::string& name) -> std::optional<error> {
    // Each marker is gone when it is read.
    if (what == std::string("get") && name == ".troupe/steps/" + std::to_string(step)) {
      const auto again = j.place.fault;
      j.place.fault = nullptr;
      REQUIRE(j.save(j.saver, ++step));
      j.place.fault = again;
    }
    return std::nullopt;
  };
  const auto opened = step_catalog::open(j.storage);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == errc::unavailable);
  CHECK(opened.error().what.find("while they were read") != std::string::npos);
  j.place.fault = nullptr;
}

TEST_CASE("a step that cannot be read may be complete: nothing is done to it until that is known") {
  saved_once j;
  std::string why = "step 10 cannot be read: full";
  SUBCASE("its manifest") {
    j.fail("get", "10/troupe-manifest.json");
  }
  SUBCASE("what there is of its files") {
    j.fail("list", "10");
    why = "step 10 is complete in '10' with other contents, and is the newest that is; it stays";
  }
  auto other = j.opened();
  REQUIRE(other.find(10) != nullptr);
  CHECK(other.find(10)->is_unreadable());
  CHECK(newest_of(other) == 0);
  const auto before = j.files();
  CHECK(error_of(j.begin(other, 10)).what == why);
  auto late = j.put(10);
  CHECK(error_of(j.commit(other, late)).code == errc::unavailable);
  CHECK(other.retain(j.keep, {j.last, j.last}).removed.empty());
  CHECK(j.files() == before);

  j.place.fault = nullptr;
  REQUIRE(other.look_around());
  CHECK(newest_of(other) == 10);
}

TEST_CASE("begun again, and whether it was completed meanwhile cannot be told: as if not begun") {
  two_ranks j;
  auto saver = j.opened();
  REQUIRE(j.begin(saver, 10));
  const auto m = j.put(10);
  auto other = j.opened();
  const auto marker = j.place.files.at(".troupe/steps/10");
  int reads = 0;
  j.place.fault = [&](const char* what, const std::string& name) -> std::optional<error> {
    if (what == std::string("get") && name == "10/troupe-manifest.json" && ++reads > 1)
      return error{errc::unavailable, "input/output error"};
    return std::nullopt;
  };
  CHECK(error_of(j.begin(other, 10)).code == errc::unavailable);
  CHECK(j.place.files.at(".troupe/steps/10") == marker);
  j.place.fault = nullptr;
  CHECK(j.commit(saver, m));
  CHECK(newest_of(j.opened()) == 10);
}
