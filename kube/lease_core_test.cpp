#include "kube/lease_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <optional>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

/// The one lease, as the API server keeps it.
struct lease_server {
  std::optional<json::object> lease;
  int version = 0;

  api_answer answer(const api_request& r) {
    if (r.method == "GET")
      return lease ? api_answer{200, json::serialize(*lease), {}} : api_answer{404, "", {}};
    auto body = *parsed(r.body);
    if (r.method == "POST" ? lease.has_value()
                           : !lease || text(body, {"metadata", "resourceVersion"}) !=
                                           text(*lease, {"metadata", "resourceVersion"}))
      return {409, R"({"message":"conflict"})", {}};
    lease = body.as_object();
    (*lease)["metadata"].as_object()["resourceVersion"] = std::to_string(++version);
    return {r.method == "POST" ? 201u : 200u, json::serialize(*lease), {}};
  }
};

struct candidate {
  lease_core core;
  int led = 0, stopped = 0;
  std::deque<lease_core::call> calls;
  std::vector<log::event> notes;

  explicit candidate(const std::string& name)
      : core({"troupe", "operator", name, std::hash<std::string>()(name)}) {}

  void perform(const lease_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* c = std::get_if<lease_core::call>(&e))
        calls.push_back(*c);
      else if (std::get_if<lease_core::leads>(&e))
        ++led;
      else if (const auto* n = std::get_if<lease_core::note>(&e))
        notes.push_back(n->event);
      else
        ++stopped;
  }
  using rule = std::function<api_answer(const api_request&)>;
  /// Until `until`, with answers by `rule` that come at once.
  void run(instant& now, instant until, const rule& answer) {
    if (!core.next_wakeup())
      perform(core.tick(now, "now"));
    while (true) {
      while (!calls.empty()) {
        const auto c = calls.front();
        calls.pop_front();
        perform(core.answered(now, "now", c.number, answer(c.what)));
      }
      REQUIRE(core.next_wakeup());
      if (*core.next_wakeup() > until)
        break;
      now = std::max(now, *core.next_wakeup());
      perform(core.tick(now, "now"));
    }
    now = until;
  }
};

api_answer away(const api_request&) {
  return {0, "nothing listens", {}};
}

} // namespace

TEST_SUITE("lease_core") {
  TEST_CASE("takes a lease that is not there, and keeps it") {
    lease_server server;
    candidate a("a");
    instant now{};
    a.run(now, now + 5min, [&](const auto& r) { return server.answer(r); });
    CHECK(a.led == 1);
    CHECK(a.stopped == 0);
    CHECK(a.core.is_leader());
    CHECK(text(*server.lease, {"spec", "holderIdentity"}) == "a");
    CHECK(server.version > 60);
  }

  TEST_CASE("stands by as long as another one renews it, and takes it when that stops") {
    lease_server server;
    candidate a("a"), b("b");
    instant now{};
    const auto real = [&](const auto& r) { return server.answer(r); };
    for (int i = 0; i < 30; ++i) {
      auto mine = now, others = now;
      a.run(mine, now + 2s, real);
      b.run(others, now + 2s, real);
      now += 2s;
    }
    CHECK(a.led == 1);
    CHECK(b.led == 0);
    CHECK(b.core.in_words() == "stands by: a leads");
    auto later = now;
    b.run(later, now + limits::lease_lasts - 2s, real);
    CHECK(b.led == 0);
    b.run(later, now + limits::lease_lasts + 2 * limits::lease_again + 2s, real);
    CHECK(b.led == 1);
    // The first one hears of it, and stops.
    auto mine = later;
    a.run(mine, later + 5s, real);
    CHECK(a.stopped == 1);
    CHECK_FALSE(a.core.is_leader());
  }

  TEST_CASE("gives it up before others may take it, where the server does not answer") {
    lease_server server;
    candidate a("a");
    instant now{};
    a.run(now, now + 20s, [&](const auto& r) { return server.answer(r); });
    const auto cut = now;
    a.run(now, cut + limits::lease_lasts, away);
    CHECK(a.stopped == 1);
    REQUIRE(a.notes.size() == 1);
    CHECK(a.notes[0].text.find("nothing listens") != std::string::npos);
  }

  TEST_CASE("an answer that was long on its way renews from when it was asked for") {
    lease_server server;
    candidate a("a");
    instant now{};
    a.run(now, now + 1s, [&](const auto& r) { return server.answer(r); });
    REQUIRE(a.core.is_leader());
    now = *a.core.next_wakeup();
    a.perform(a.core.tick(now, "now"));
    REQUIRE(a.calls.size() == 1);
    const auto read = a.calls.front();
    a.calls.clear();
    now += 5s;
    a.perform(a.core.answered(now, "now", read.number, server.answer(read.what)));
    const auto write = a.calls.front();
    a.calls.clear();
    now += 9s; // 14 s after it was asked for: others may take it in a second
    a.perform(a.core.answered(now, "now", write.number, server.answer(write.what)));
    CHECK(a.stopped == 1);
  }

  TEST_CASE("of two that take it at once one is refused") {
    lease_server server;
    candidate a("a"), b("b");
    instant now{};
    a.perform(a.core.tick(now, "now"));
    b.perform(b.core.tick(now, "now"));
    for (int step = 0; step < 2; ++step)
      for (auto* c : {&a, &b}) {
        if (c->calls.empty())
          continue;
        const auto call = c->calls.front();
        c->calls.pop_front();
        c->perform(c->core.answered(now, "now", call.number, server.answer(call.what)));
      }
    CHECK(a.led + b.led == 1);
  }
}
