#include "kube/watch_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::kube;

namespace {

std::string object(const std::string& name, int version, const std::string& uid = "") {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"jobs","uid":"{}","resourceVersion":"{}"}}}})",
      name, uid.empty() ? name + "-uid" : uid, version);
}

std::string page(const std::vector<std::string>& objects, int version,
                 const std::string& more = "") {
  return fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
                     version, more, fmt::join(objects, ","));
}

std::string event(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object);
}

/// A core and what it has told; the API server is the test.
struct following {
  watch_core core{{"/api/v1/namespaces/jobs/pods", "app=words", "", 7}};
  instant now{};
  std::vector<std::string> told;
  std::string asked; ///< the target of the last call or watch
  std::uint64_t number = 0;
  bool watches = false;
  std::vector<log::event> notes;

  void perform(const watch_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* c = std::get_if<watch_core::call>(&e)) {
        asked = c->what.target, number = c->number, watches = false;
      } else if (const auto* o = std::get_if<watch_core::open>(&e)) {
        asked = o->what.target, number = o->number, watches = true;
      } else if (std::get_if<watch_core::cut>(&e)) {
        told.emplace_back("cut");
      } else if (const auto* is = std::get_if<watch_core::is>(&e)) {
        told.push_back(key_of(is->object) + "@" +
                       text(is->object, {"metadata", "resourceVersion"}));
      } else if (const auto* gone = std::get_if<watch_core::is_gone>(&e)) {
        told.push_back("-" + gone->key);
      } else if (const auto* n = std::get_if<watch_core::note>(&e)) {
        notes.push_back(n->event);
      } else {
        told.emplace_back("all");
      }
  }
  void start() { perform(core.start(now)); }
  void answer(unsigned status, const std::string& body = "") {
    perform(core.answered(now, number, {status, body, {}}));
  }
  void line(const std::string& text) { perform(core.line(now, number, text)); }
  void ends(unsigned status = 200) { perform(core.closed(now, number, {status, "", {}})); }
  /// As long as it wants to wait.
  duration wait() {
    const auto from = now;
    REQUIRE(core.next_wakeup());
    now = std::max(now, *core.next_wakeup());
    perform(core.tick(now));
    return now - from;
  }
  std::vector<std::string> news() { return std::exchange(told, {}); }
  using list = std::vector<std::string>;

  /// Two objects are there, and it watches.
  static following started() {
    following f;
    f.start();
    f.answer(200, page({object("a", 1), object("b", 2)}, 10));
    f.news();
    return f;
  }
};

using list = following::list;

} // namespace

TEST_SUITE("watch_core") {
  TEST_CASE("lists by pages, then watches from there") {
    following f;
    f.start();
    CHECK(f.asked == "/api/v1/namespaces/jobs/pods?limit=500&labelSelector=app%3Dwords");
    f.answer(200, page({object("a", 1)}, 9, "next+page"));
    CHECK(f.asked ==
          "/api/v1/namespaces/jobs/pods?limit=500&continue=next%2Bpage&labelSelector=app%3Dwords");
    CHECK(f.news() == list{"jobs/a@1"});
    f.answer(200, page({object("b", 2)}, 10));
    CHECK(f.news() == list{"jobs/b@2", "all"});
    CHECK(f.watches);
    CHECK(f.asked.find("watch=1&allowWatchBookmarks=true&resourceVersion=10&") !=
          std::string::npos);
  }

  TEST_CASE("tells each state once, also if it is repeated or late") {
    auto f = following::started();
    f.line(event("ADDED", object("c", 11)));
    f.line(event("MODIFIED", object("a", 12)));
    f.line(event("MODIFIED", object("a", 12)));
    f.line(event("ADDED", object("c", 11)));
    f.line(event("DELETED", object("b", 13)));
    f.line(event("MODIFIED", object("b", 9)));
    CHECK(f.news() == list{"jobs/c@11", "jobs/a@12", "-jobs/b"});
    CHECK(f.core.size() == 2);
  }

  TEST_CASE("goes on from the newest bookmark when a server has ended a watch") {
    auto f = following::started();
    f.line(event("BOOKMARK", R"({"metadata":{"resourceVersion":"40"}})"));
    f.now += 60s;
    f.ends();
    CHECK(f.asked.find("resourceVersion=40&") != std::string::npos);
    CHECK(f.news().empty());
  }

  TEST_CASE("opens a watch that ends at once again after a wait that grows") {
    auto f = following::started();
    f.ends();
    CHECK(f.core.is_behind());
    const auto first = f.wait();
    CHECK(first >= limits::watch_again_first);
    CHECK(f.watches);
    f.ends();
    CHECK(f.wait() >= 2 * limits::watch_again_first);
  }

  TEST_CASE("lists again where the version is too old, and finds what has gone") {
    auto f = following::started();
    f.line(event("ERROR", R"({"kind":"Status","code":410,"message":"too old resource version"})"));
    CHECK(f.news() == list{"cut"});
    f.wait();
    CHECK(f.asked.find("limit=500") != std::string::npos);
    f.answer(200, page({object("b", 2), object("d", 30)}, 31));
    CHECK(f.news() == list{"jobs/d@30", "-jobs/a", "all"});
  }

  TEST_CASE("asks for smaller pages where an answer is too large, until one is not") {
    following f;
    f.start();
    std::vector<std::string> limits_asked;
    while (f.asked.find("limit=1&") == std::string::npos) {
      f.perform(f.core.answered(f.now, f.number, {0, "body limit exceeded", {}, true}));
      f.wait();
      limits_asked.push_back(f.asked.substr(0, f.asked.find('&')));
      REQUIRE(limits_asked.size() < 10);
    }
    CHECK(limits_asked.front() == "/api/v1/namespaces/jobs/pods?limit=125");
    f.answer(200, page({object("a", 1)}, 9, "next"));
    CHECK(f.asked.find("limit=1&continue=next") != std::string::npos);
    f.answer(200, page({object("b", 2)}, 10));
    CHECK(f.news() == list{"jobs/a@1", "jobs/b@2", "all"});
  }

  TEST_CASE("what cannot be followed for long is told once, and again after it was heard") {
    auto f = following::started();
    for (int row = 1; row <= 2; ++row) {
      f.ends(500);
      const auto began = f.now;
      while (f.now - began < 5min) {
        f.wait();
        f.watches ? f.ends(500) : f.answer(500);
      }
      REQUIRE(f.notes.size() == static_cast<std::size_t>(row));
      CHECK(f.notes.back().name == std::string("watch_unheard"));
      CHECK(f.notes.back().text.find("/api/v1/namespaces/jobs/pods cannot be followed for ") == 0);
      f.wait();
      f.line(event("ADDED", object("later", 100 + row)));
    }
  }

  TEST_CASE("tells that an object was replaced by another of its name") {
    auto f = following::started();
    f.line(event("ADDED", object("a", 20, "another")));
    CHECK(f.news() == list{"-jobs/a", "jobs/a@20"});
  }

  TEST_CASE("waits for a server that is away, and misses nothing") {
    auto f = following::started();
    f.ends(0);
    for (int i = 0; i < 12; ++i) {
      CHECK(f.wait() <= 2 * limits::watch_again_most);
      CHECK(f.asked.find("resourceVersion=10&") != std::string::npos);
      f.ends(0);
    }
    f.wait();
    f.line(event("MODIFIED", object("a", 50)));
    CHECK(f.news() == list{"jobs/a@50"});
  }

  TEST_CASE("cuts a watch that has not ended in time") {
    auto f = following::started();
    CHECK(f.wait() >= limits::watch_for + limits::watch_ends_late);
    CHECK(f.news() == list{"cut"});
    f.wait();
    CHECK(f.watches);
  }

  TEST_CASE("names a right that it lacks, once, and tries again") {
    following f;
    f.start();
    const std::string why = R"({"message":"User \"x\" cannot list resource \"pods\""})";
    for (int i = 0; i < 3; ++i) {
      f.answer(403, why);
      CHECK(f.wait() >= limits::watch_again_most);
    }
    REQUIRE(f.notes.size() == 1);
    CHECK(f.notes[0].text.find("cannot list resource") != std::string::npos);
    f.answer(200, page({}, 5));
    CHECK(f.news() == list{"all"});
  }

  TEST_CASE("what is no list or no event ends in another list") {
    following f;
    f.start();
    f.answer(200, "<html>");
    f.wait();
    f.answer(200, page({object("a", 1)}, 2));
    f.line("{\"type\":");
    CHECK(f.news() == list{"jobs/a@1", "all", "cut"});
    f.wait();
    CHECK_FALSE(f.watches);
  }

  TEST_CASE("is told nothing of what it has left") {
    auto f = following::started();
    f.perform(f.core.stop());
    CHECK(f.news() == list{"cut"});
    f.line(event("ADDED", object("z", 99)));
    CHECK(f.news().empty());
    CHECK_FALSE(f.core.next_wakeup());
  }
}
