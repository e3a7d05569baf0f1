#include "runtime/os/journal/journal_opening.hpp"

#include "messages/kinds.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::os;

namespace {

messages::any_msg concluded(bool success) {
  messages::author author("test");
  return author
      .write<messages::Concluded>({},
                                  [success](auto b) {
                                    b.setSuccess(success);
                                    b.setReason("because");
                                  })
      .any();
}

messages::any_msg proposed() {
  messages::author author("test");
  return author.write<messages::GenerationProposed>({}, [](auto) {}).any();
}

messages::any_msg farewell() {
  messages::author author("test");
  return author.write<messages::FarewellEnded>({}, [](auto) {}).any();
}

constexpr std::uint64_t this_run = 7, another_run = 8;

/// "anew" or "goes on", and what is said of it.
std::string opened(const journal_past& past, std::optional<std::uint64_t> run,
                   const std::string& uid = {}) {
  const auto how = open_over("/j", past, {"job", run, uid}, term{42});
  std::string all = how.anew ? "anew" : "goes on";
  for (const auto& n : how.notices)
    all += "; " + n.text;
  return all;
}

} // namespace

TEST_SUITE("journal: which master may take it up") {
  TEST_CASE("another job's is refused by name") {
    const auto refused = check_owner("/j", "mine", {"yours", {}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::refused);
    CHECK(refused.error().what ==
          "journal '/j': it belongs to job 'mine', and this is job 'yours' (--rdzv-id); nothing in "
          "it was changed. Each job needs a journal of its own (--journal)");
    CHECK_FALSE(check_owner("/j", "mine", {"", {}}));
    CHECK_FALSE(check_owner("/j", "", {"yours", {}}));
    CHECK(check_owner("/j", "mine", {"mine", {}}));
    CHECK(check_owner("/j", "", {"", {}}));
    CHECK(check_owner("/j", std::nullopt, {"yours", {}}));
  }

  TEST_CASE("an empty one is begun, and one whose job has not concluded is gone on with") {
    CHECK(opened({"job", {}, {}, 0}, this_run) == "goes on");
    CHECK(opened({"job", this_run, {proposed()}, 0}, this_run) == "goes on");
    CHECK(opened({"job", another_run, {proposed()}, 0}, this_run) ==
          "goes on; journal '/j': an earlier master has left it; going on with its job");
  }

  TEST_CASE("a launcher knows its run: its own verdict is told again, an earlier run's is not") {
    for (const bool told : {false, true}) {
      std::vector<messages::any_msg> records{proposed(), concluded(false)};
      if (told)
        records.push_back(farewell());
      CHECK(opened({"job", this_run, records, 0}, this_run)
                .find("goes on; journal '/j': the job "
                      "has failed (because) already") == 0);
      CHECK(opened({"job", another_run, records, 0}, this_run) ==
            "anew; journal '/j': the run before has failed (because); this is a new run");
      CHECK(opened({"job", {}, records, 0}, this_run).find("anew") == 0);
    }
  }

  TEST_CASE("a stand-alone master does not: a verdict that was told to all is an earlier run's") {
    CHECK(opened({"job", {}, {concluded(true)}, 0}, {}).find("goes on") == 0);
    CHECK(opened({"job", {}, {concluded(true), farewell()}, 0}, {}) ==
          "anew; journal '/j': the run before has succeeded (because); this is a new run");
  }

  TEST_CASE("a job of a cluster knows its own by identity, whatever was told and ended") {
    const std::vector<messages::any_msg> goes_on{proposed()},
        over{proposed(), concluded(true), farewell()};
    CHECK(opened({"job", {}, goes_on, 0, "u1"}, {}, "u1") == "goes on");
    CHECK(opened({"job", {}, over, 0, "u1"}, {}, "u1") ==
          "goes on; journal '/j': the job has succeeded (because) already; telling those that ask");
    for (const auto& left : {goes_on, over})
      CHECK(opened({"job", {}, left, 0, "u1"}, {}, "u2") ==
            "anew; journal '/j': an earlier job of this name, which was deleted, has left it; this "
            "one begins anew");
    // As an older version has written it.
    CHECK(opened({"job", {}, goes_on, 0}, {}, "u2").find("goes on") == 0);
    CHECK(opened({"job", {}, goes_on, 0, "u1"}, {}).find("goes on") == 0);
  }

  TEST_CASE("records that are known to be missing are told") {
    CHECK(opened({"job", this_run, {proposed()}, 3}, this_run)
              .find("goes on; journal '/j': its last 3 record(s) are gone") == 0);
  }
}
