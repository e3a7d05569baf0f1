#include "kube/journal_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"
#include "runtime/base/limits.hpp"
#include "tests/kube/journal_opener.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;
using testing::journal_opener;
using testing::left;
using testing::names;
using testing::refused_with;
using testing::simulated_config_maps;
using words = std::vector<std::string>;

namespace {

words asked(const simulated_config_maps& server) {
  words methods;
  for (const auto& r : server.asked)
    methods.push_back(r.method);
  return methods;
}

words last_only(words records) {
  return records.empty() ? records : words{records.back()};
}

} // namespace

TEST_CASE("a journal that is not there is made, and what was appended is read back") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  REQUIRE(master.opened);
  CHECK(master.opened->as == term{100});
  CHECK_FALSE(master.opened->taken_up);
  CHECK(asked(server) == words{"GET", "POST"});
  for (const char* record : {"one", "two"})
    master.append(record);
  master.read();
  CHECK(master.answers == words{"1", "2", "all 2"});
  CHECK(left(server) == words{"one", "two"});
  CHECK(master.told.empty());
}

TEST_CASE("the next opener is newer, takes up what it finds, and counts on") {
  simulated_config_maps server;
  journal_opener first(server, "master-0/1");
  first.open();
  first.append("one");
  journal_opener second(server, "master-1/2");
  second.open();
  REQUIRE(second.opened);
  CHECK(second.opened->as == term{101});
  CHECK(second.opened->taken_up);
  CHECK(second.found.at(0).image.job == "words");
  second.append("two");
  CHECK(second.answers == words{"2"});
  CHECK(left(server) == words{"one", "two"});
}

TEST_CASE("a journal that begins anew has no records, and counts on") {
  simulated_config_maps server;
  journal_opener first(server, "master-0/1");
  first.open();
  first.append("one");
  journal_opener second(server, "master-1/2");
  second.anew = true;
  second.open();
  CHECK_FALSE(second.opened->taken_up);
  second.read();
  second.append("two");
  CHECK(second.answers == words{"all 0", "2"});
  CHECK(left(server) == words{"two"});
}

TEST_CASE("labels say whose the ConfigMap is; labels and owners of others stay") {
  simulated_config_maps server;
  journal_opener first(server, "master-0/1", "train words");
  first.open();
  auto& object = server.objects.at("words");
  CHECK(label(object, "app.kubernetes.io/managed-by") == "troupe");
  CHECK(label(object, "elasticjob.dlrover/name") == "train-words");
  CHECK(member(object, {"metadata", "ownerReferences"}) == nullptr);
  object["metadata"].as_object()["labels"].as_object()["theirs"] = "x";
  object["metadata"].as_object()["ownerReferences"] = json::array{json::object{{"uid", "u"}}};
  server.touch(object);
  first.append("one");
  CHECK(first.answers == words{"1"});
  CHECK(label(object, "theirs") == "x");
  CHECK(items(object, {"metadata", "ownerReferences"}).size() == 1);
  CHECK(first.told.empty());
}

TEST_CASE("a ConfigMap that is deleted is made again with its owners") {
  simulated_config_maps server;
  server.objects["words"] = {
      {"metadata",
       json::object{{"name", "words"},
                    {"ownerReferences",
                     json::array{json::object{{"uid", "u"}, {"blockOwnerDeletion", true}}}}}}};
  server.touch(server.objects["words"]);
  journal_opener master(server, "master-0/1");
  master.open();
  server.objects.erase("words");
  master.append("one");
  CHECK(*member(server.objects.at("words"), {"metadata", "ownerReferences"}) ==
        json::parse(R"([{"uid":"u"}])"));
}

TEST_CASE("an empty ConfigMap, made for a Role that names it, is a new journal") {
  simulated_config_maps server;
  server.objects["words"] = {{"metadata", json::object{{"name", "words"}}}};
  server.touch(server.objects["words"]);
  journal_opener master(server, "master-0/1");
  master.open();
  REQUIRE(master.opened);
  CHECK_FALSE(master.opened->taken_up);
  CHECK(asked(server) == words{"GET", "PUT"});
}

TEST_CASE("records that come while a write is under way are written together by the next") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.holds = true;
  for (const char* record : {"one", "two", "three"})
    master.append(record);
  master.read();
  REQUIRE(master.held.size() == 1);
  CHECK(master.answers.empty());
  master.release();
  CHECK(master.answers == words{"1"});
  master.release();
  CHECK(master.answers == words{"1", "2", "3", "all 3"});
  CHECK(asked(server) == words{"GET", "POST", "PUT", "PUT"});
}

TEST_CASE("of two that open at once the server refuses one, which reads again and is the newer") {
  simulated_config_maps server;
  journal_opener one(server, "master-0/1"), other(server, "master-1/2");
  one.holds = other.holds = true;
  one.open();
  other.open();
  one.release();
  other.release();
  one.release(); // is written
  CHECK(one.opened);
  other.release(); // is a conflict
  CHECK_FALSE(other.opened);
  other.settle();
  REQUIRE(other.opened);
  CHECK(one.opened->as < other.opened->as);
}

TEST_CASE("an owner that was replaced fails everything, and says so once") {
  simulated_config_maps server;
  journal_opener first(server, "master-0/1");
  first.open();
  journal_opener second(server, "master-1/2");
  second.open();
  for (const char* record : {"one", "two"})
    first.append(record);
  first.read();
  first.compact(last_only);
  CHECK(first.answers == words{"refused", "refused", "refused", "refused"});
  REQUIRE(names(first.told) == words{"journal_lost"});
  CHECK(first.told[0].text ==
        "journal 'configmap:words' is lost to this master: another master has taken it up, as "
        "epoch 101 on master-1: this one is replaced, decides nothing more and ends");
  second.append("three");
  CHECK(left(server) == words{"three"});
}

TEST_CASE("of a write without an answer it is looked whether it took effect") {
  for (const bool took_effect : {true, false}) {
    simulated_config_maps server;
    journal_opener master(server, "master-0/1");
    master.open();
    int troubles = 1;
    master.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "PUT" || troubles-- <= 0)
        return std::nullopt;
      if (took_effect)
        server.answer(r);
      return api_answer{0, "connection reset", {}};
    };
    master.append("one");
    CHECK(master.answers.empty());
    master.append("two");
    master.settle();
    CHECK(master.answers == words{"1", "2"});
    CHECK(left(server) == words{"one", "two"});
    CHECK(names(master.told) == words{"config_map_waits", "config_map_goes_on"});
  }
}

TEST_CASE("a write that takes effect after it was looked for is in the journal once") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  std::optional<api_request> late;
  master.instead = [&](const api_request& r) -> std::optional<api_answer> {
    if (r.method != "PUT" || late)
      return std::nullopt;
    late = r;
    return api_answer{0, "it has not answered in time", {}};
  };
  master.append("one");
  master.append("two");
  master.holds = true;
  master.tick();
  master.release(); // the look: it is not there
  server.answer(*late);
  master.settle();
  CHECK(master.answers == words{"1", "2"});
  CHECK(left(server) == words{"one", "two"});
}

TEST_CASE("an opening without an answer") {
  for (const bool took_effect : {true, false}) {
    simulated_config_maps server;
    journal_opener master(server, "master-0/1");
    int troubles = 1;
    master.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method != "POST" || troubles-- <= 0)
        return std::nullopt;
      if (took_effect)
        server.answer(r);
      return api_answer{504, "", {}};
    };
    master.open();
    master.settle();
    REQUIRE(master.opened);
    CHECK(master.opened->as == term{100});
    CHECK_FALSE(master.opened->taken_up);
  }
}

TEST_CASE("an API server that is away, or wants to be left alone, is waited for") {
  for (const auto& trouble :
       {api_answer{0, "connection refused", {}}, api_answer{503, "", {}}, api_answer{401, "", {}},
        api_answer{429, "", std::optional<duration>(20s)}}) {
    simulated_config_maps server;
    journal_opener master(server, "master-0/1");
    master.open();
    master.instead = [&](const api_request&) -> std::optional<api_answer> {
      return master.now < instant{} + 2h ? std::optional(trouble) : std::nullopt;
    };
    master.append("one");
    if (trouble.retry_after)
      CHECK(master.core.next_wakeup() >= instant{} + 20s);
    master.settle();
    CHECK(master.answers == words{"1"});
    REQUIRE(names(master.told) == words{"config_map_waits", "config_map_goes_on"});
    CHECK(master.told[0].severity == log::level::warning);
    CHECK(master.told[1].severity == log::level::notice);
    CHECK(master.told[1].text.find("it is written again, after 2 h") != std::string::npos);
  }
}

TEST_CASE("a master that starts waits for it as well, for a bounded time") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.instead = [](const api_request&) -> std::optional<api_answer> {
    return api_answer{0, "connection refused", {}};
  };
  master.open();
  master.settle();
  REQUIRE(master.not_opened);
  CHECK(master.not_opened->code == errc::unavailable);
  CHECK(master.not_opened->what == "journal 'configmap:words': connection refused, for 5 min now");
  CHECK(master.now >= instant{} + limits::config_map_open_within);
  CHECK(names(master.told) == words{"config_map_waits"});
}

TEST_CASE("a right that lacks is named, with what a Role must have") {
  const auto forbidden = [](const api_request& r) -> std::optional<api_answer> {
    if (r.method == "GET")
      return std::nullopt;
    return refused_with(403, "User \"x\" cannot do that to configmaps");
  };
  simulated_config_maps server;
  SUBCASE("at the start it is an error") {
    journal_opener master(server, "master-0/1");
    master.instead = forbidden;
    master.open();
    REQUIRE(master.not_opened);
    CHECK(master.not_opened->code == errc::refused);
    CHECK(master.not_opened->what ==
          "journal 'configmap:words': User \"x\" cannot do that to configmaps (status 403); a Role "
          "of this pod's service account must allow `create`: apiGroups [\"\"], resources "
          "[configmaps], verbs [get, create, update]");
    CHECK_FALSE(master.core.next_wakeup());
  }
  SUBCASE("later a Role may come back") {
    journal_opener master(server, "master-0/1");
    master.open();
    master.instead = forbidden;
    master.append("one");
    CHECK(master.answers.empty());
    REQUIRE(names(master.told) == words{"config_map_waits"});
    CHECK(master.told[0].text.find("must allow `update`") != std::string::npos);
    master.instead = nullptr;
    master.settle();
    CHECK(master.answers == words{"1"});
  }
}

TEST_CASE("what the server never takes is an error of all that follows") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.instead = [](const api_request& r) -> std::optional<api_answer> {
    if (r.method != "PUT")
      return std::nullopt;
    return refused_with(422, "field is immutable when `immutable` is set");
  };
  master.append("one");
  master.instead = nullptr;
  master.append("two");
  CHECK(master.answers == words{"refused", "refused"});
  REQUIRE(names(master.told) == words{"journal_lost"});
  CHECK(master.told[0].text.find("immutable") != std::string::npos);
}

TEST_CASE("a namespace that is missing") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.instead = [](const api_request&) -> std::optional<api_answer> {
    return refused_with(404, "namespaces \"jobs\" not found");
  };
  master.open();
  REQUIRE(master.not_opened);
  CHECK(master.not_opened->what.find("namespaces \"jobs\" not found (status 404)") !=
        std::string::npos);
}

TEST_CASE("a ConfigMap that was deleted is made again with all records") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.append("one");
  server.objects.clear();
  master.append("two");
  CHECK(master.answers == words{"1", "2"});
  CHECK(names(master.told) == words{"config_map_made_again"});
  CHECK(left(server) == words{"one", "two"});
}

TEST_CASE("a ConfigMap that something else has changed or emptied, or is none of ours") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.append("one");
  auto& object = server.objects.at("words");
  const auto opened_on = [&server] {
    journal_opener next(server, "next/9");
    next.open();
    REQUIRE(next.not_opened);
    return next.not_opened->what;
  };
  SUBCASE("records of an owner that is this one") {
    auto other = **image_in(object);
    other.replace({"other"});
    put(object, other);
  }
  SUBCASE("no records") {
    object.erase("data");
    object.erase("binaryData");
  }
  SUBCASE("damage") {
    object["binaryData"].as_object()["records"] = "";
    CHECK(opened_on() == "journal 'configmap:words': record 1 is missing");
  }
  SUBCASE("a program's configuration") {
    object["data"] = json::object{{"a", "b"}};
    CHECK(opened_on() == "journal 'configmap:words': the ConfigMap is not a journal of Troupe");
  }
  server.touch(object);
  master.append("two");
  CHECK(master.answers == words{"1", "invalid"});
  CHECK(names(master.told) == words{"journal_lost"});
}

TEST_CASE("endless conflicts are waited out") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  int conflicts = 5;
  master.instead = [&](const api_request& r) -> std::optional<api_answer> {
    if (r.method == "PUT" && conflicts-- > 0)
      server.touch(server.objects.at("words"));
    return std::nullopt;
  };
  master.append("one");
  CHECK(conflicts == 5 - limits::config_map_conflicts_max);
  CHECK(master.core.next_wakeup());
  master.settle();
  CHECK(master.answers == words{"1"});
  CHECK(left(server) == words{"one"});
}

TEST_CASE("compaction, in its turn") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  for (const char* record : {"one", "two", "three"})
    master.append(record);
  master.holds = true;
  master.compact(last_only);
  master.append("four");
  master.read();
  master.compact([](const words& all) { return all; });
  master.settle();
  CHECK(master.answers == words{"1", "2", "3", "compacted", "4", "all 2", "compacted"});
  CHECK(left(server) == words{"three", "four"});
}

TEST_CASE("a full journal makes room with what it was compacted by, else it says what to do") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  const std::string half(limits::config_map_bytes_max / 2, 'x');
  const std::string more = half + 'y';
  SUBCASE("a new world instead of the one before it") {
    master.compact(last_only);
    for (const auto& record : {half, more, half})
      master.append(record);
    CHECK(master.answers == words{"compacted", "1", "2", "3"});
    CHECK(left(server) == words{half});
    CHECK(master.told.empty());
  }
  SUBCASE("not known what may go") {
    for (const auto& record : {half, more, more, std::string("small")})
      master.append(record);
    CHECK(master.answers == words{"1", "overloaded", "overloaded", "2"});
    REQUIRE(names(master.told) == words{"config_map_full"});
    CHECK(master.told[0].text ==
          "journal 'configmap:words': it is full: a record of 385 KiB does not fit beside the 384 "
          "KiB of 768 that are taken; a job of this size needs its journal on a volume (--journal "
          "FILE)");
    CHECK(left(server) == words{half, "small"});
  }
  SUBCASE("one that can never fit") {
    master.compact(last_only);
    master.append(half + half);
    CHECK(master.answers == words{"compacted", "overloaded"});
  }
}

TEST_CASE("not too many wait, and each is answered in its turn") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.holds = true;
  for (std::size_t n = 0; n < limits::journal_queue_max + 3; ++n)
    master.append("r");
  master.settle();
  REQUIRE(master.answers.size() == limits::journal_queue_max + 3);
  CHECK(master.answers[limits::journal_queue_max] == std::to_string(limits::journal_queue_max + 1));
  CHECK(master.answers.back() == "overloaded");
}

TEST_CASE("a master that ends answers what waits; late answers mean nothing") {
  simulated_config_maps server;
  journal_opener master(server, "master-0/1");
  master.open();
  master.holds = true;
  master.append("one");
  master.append("two");
  CHECK(master.core.is_busy());
  master.perform(master.core.ended());
  CHECK(master.answers == words{"closed", "closed"});
  CHECK_FALSE(master.core.is_busy());
  master.release();
  CHECK(master.answers.size() == 2);
  CHECK(master.told.empty());
}
