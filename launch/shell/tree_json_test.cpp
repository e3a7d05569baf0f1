#include "launch/shell/tree_json.hpp"

#include "launch/shell/testing/job_tree.hpp"
#include "messages/kinds.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <capnp/schema.h>
#include <doctest/doctest.h>

#include <set>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

namespace {

namespace json = boost::json;

json::object parsed(const std::string& text) {
  CHECK(text.find('\n') == std::string::npos);
  return json::parse(text).as_object();
}

/// As docs/actor-shell.md promises: every field is in every row, with its type.
void check_row(const json::object& row) {
  const std::set<std::string> expected{
      "name",          "kind",    "state",      "phase",   "troubled", "uptime_ms", "restarts",
      "restarts_left", "mailbox", "unexpected", "budgets", "last_end", "children"};
  std::set<std::string> found;
  for (const auto& [name, value] : row)
    found.emplace(name.data(), name.size());
  CHECK(found == expected);
  for (const auto* text : {"name", "kind", "state", "phase"})
    CHECK(row.at(text).is_string());
  for (const auto* number : {"uptime_ms", "restarts", "mailbox", "unexpected"})
    CHECK((row.at(number).is_int64() || row.at(number).is_uint64()));
  CHECK(row.at("troubled").is_bool());
  CHECK((row.at("restarts_left").is_null() || row.at("restarts_left").is_int64()));
  if (!row.at("last_end").is_null()) {
    const auto& end = row.at("last_end").as_object();
    CHECK((end.size() == 3 && end.at("bad").is_bool() && end.at("why").is_string() &&
           end.at("ago_ms").is_int64()));
  }
  for (const auto& budget : row.at("budgets").as_array())
    CHECK((budget.as_object().size() == 3 && budget.at("of").is_string()));
  for (const auto& child : row.at("children").as_array())
    check_row(child.as_object());
}

/// uptimeMs -> uptime_ms
std::string with_underscores(const std::string& name) {
  std::string out;
  for (const char c : name)
    out += c >= 'A' && c <= 'Z' ? "_" + std::string(1, static_cast<char>(c - 'A' + 'a'))
                                : std::string(1, c);
  return out;
}

} // namespace

TEST_CASE("json: a document keeps to its schema, row by row") {
  const auto d = parsed(tree_json(job_after_a_kill(), {"h:1", "2026-01-02T03:04:05Z", 2500}));
  CHECK(d.size() == 5);
  CHECK(d.at("schema") == "troupe.tree/1");
  CHECK(d.at("master") == "h:1");
  CHECK(d.at("asked_at") == "2026-01-02T03:04:05Z");
  CHECK(d.at("took_us") == 2500);
  check_row(d.at("tree").as_object());
}

TEST_CASE("json: every field of the message is in a row") {
  const auto d = parsed(tree_json(tree_row("a", 1s), {}));
  for (const auto field : capnp::Schema::from<messages::TreeNode>().getFields())
    CHECK_MESSAGE(
        d.at("tree").as_object().contains(with_underscores(field.getProto().getName().cStr())),
        field.getProto().getName().cStr());
}

TEST_CASE("json: values are the report's") {
  auto of = tree_row("a\xff", 1500ms, "x").budget(1, 3).budget(2, 3, "n").ended(40ms, "signal 9");
  of.restarts = 4;
  of.mailbox = 5;
  CHECK(
      json::serialize(parsed(tree_json(of, {})).at("tree")) ==
      "{\"name\":\"a\xef\xbf\xbd\",\"kind\":\"one_for_one\",\"state\":\"running\",\"phase\":\"x\","
      "\"troubled\":true,\"uptime_ms\":1500,\"restarts\":4,\"restarts_left\":2,\"mailbox\":5,"
      "\"unexpected\":0,\"budgets\":[{\"of\":\"\",\"used\":1,\"allowed\":3},"
      "{\"of\":\"n\",\"used\":2,\"allowed\":3}],\"last_end\":{\"ago_ms\":40,\"bad\":true,"
      "\"why\":\"signal 9\"},\"children\":[]}");
}

TEST_CASE("json: no tree where nothing passed the filter, an error where nothing was answered") {
  CHECK(parsed(tree_json(std::nullopt, {})).at("tree").is_null());
  const auto d = parsed(tree_error_json("gone", {"h:1", "now", 0}));
  CHECK(d.at("error") == "gone");
  CHECK(!d.contains("tree"));
}
