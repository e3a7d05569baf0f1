// What a master is promised of a journal that cannot be written.

#include "kube/limits.hpp"
#include "tests/kube/journal_opener.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;
using testing::journal_opener;
using testing::left;
using testing::names;
using testing::simulated_config_maps;
using words = std::vector<std::string>;

TEST_CASE("what cannot be written is promised after a while, and is written when it can be") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1", {}, 3s);
  master.open();
  bool away = true;
  master.instead = [&](const api_request&) -> std::optional<api_answer> {
    return away ? std::optional(api_answer{0, "connection refused", {}}) : std::nullopt;
  };
  master.append("one");
  while (master.now < instant{} + 3s) {
    CHECK(master.answers.empty());
    master.tick();
  }
  CHECK(master.answers == words{"1"});
  master.append("two");
  master.append("two too");
  master.read();
  master.compact([](words records) { return words{records.front(), records.back()}; });
  CHECK(master.answers == words{"1", "2", "3", "all 3", "compacted"});
  CHECK(master.core.is_busy());
  CHECK(names(master.told) == words{"config_map_waits"});
  CHECK(
      master.told[0].text ==
      "journal 'configmap:words': connection refused; it is tried again until it can be written. "
      "Training goes on, and workers are restarted on the same nodes after at most 3.0 s; no node "
      "is replaced until then");

  SUBCASE("all of it, and then as ever") {
    away = false;
    master.settle();
    CHECK_FALSE(master.core.is_busy());
    CHECK(names(master.told) == words{"config_map_waits", "config_map_goes_on"});
    master.append("four");
    CHECK(master.answers.back() == "4");
    CHECK(left(server) == words{"one", "two too", "four"});
  }
  SUBCASE(
      "a master that has taken over meanwhile does not know it, and the one before is replaced") {
    journal_opener next(server, "master-1/2");
    next.open();
    next.read();
    CHECK(next.records.empty());
    away = false;
    master.settle();
    CHECK(names(master.told) == words{"config_map_waits", "journal_lost"});
    CHECK_FALSE(master.core.is_busy());
    master.append("four");
    CHECK(master.answers.back() == "refused");
    CHECK(left(server).empty());
  }
  SUBCASE("what it was promised in one go is bounded") {
    const std::string large(limits::config_map_bytes_max - 100, 'x');
    master.append(large);
    CHECK(master.answers.back() == "4"); // compacted by what it was compacted by before
    master.compact([](words records) { return records; });
    master.append(large);
    CHECK(master.answers.back() == "overloaded");
    away = false;
    master.settle();
    CHECK(left(server).back() == large);
  }
}

TEST_CASE("what may not be promised waits, and what comes behind it") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1", {}, 3s);
  master.open();
  master.holds = true;
  SUBCASE("in its turn") {
    master.append("one");
    master.tick();
    master.append("two", false);
    master.append("three");
    master.read();
    CHECK(master.answers == words{"1"});
    master.settle();
    CHECK(master.answers == words{"1", "2", "3", "all 3"});
  }
  SUBCASE("as the first") {
    master.append("one", false);
    master.append("two");
    CHECK_FALSE(master.core.next_wakeup());
    master.release();
    CHECK(master.answers == words{"1"});
    master.release();
    CHECK(master.answers == words{"1", "2"});
    CHECK(master.told.empty());
  }
}

TEST_CASE("an API server that says nothing at all is waited for as long") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1", {}, 3s);
  master.open();
  master.holds = true;
  master.append("one");
  CHECK(master.core.next_wakeup() == instant{} + 3s);
  master.tick();
  CHECK(master.answers == words{"1"});
  CHECK(names(master.told) == words{"config_map_waits"});
  master.append("two");
  CHECK(master.answers == words{"1", "2"});
  CHECK(master.held.size() == 1);
  master.settle();
  CHECK(names(master.told) == words{"config_map_waits", "config_map_goes_on"});
  CHECK(left(server) == words{"one", "two"});
}
