#include "launch/shell/tree_json.hpp"

#include "launch/shell/tree_filter.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <cmath>

namespace troupe::launch {

namespace {

namespace json = boost::json;

std::int64_t whole_milliseconds(duration d) {
  return std::llround(milliseconds_of(d));
}

json::object budget_object(const sup::budget_use& b) {
  return {{"of", os::valid_utf8(b.of)}, {"used", b.used}, {"allowed", b.allowed}};
}

json::value end_value(const std::optional<sup::past_end>& end) {
  if (!end)
    return nullptr;
  return json::object{{"ago_ms", whole_milliseconds(end->ago)},
                      {"bad", end->why.has_value()},
                      {"why", os::valid_utf8(end->reason())}};
}

/// Left of the supervisor's own budget.
json::value restarts_left(const sup::node_report& r) {
  for (const auto& b : r.budgets)
    if (b.of.empty())
      return std::int64_t{b.allowed} - std::int64_t{b.used};
  return nullptr;
}

json::object row_object(const sup::node_report& r) {
  json::array budgets, children;
  for (const auto& b : r.budgets)
    budgets.push_back(budget_object(b));
  for (const auto& child : r.children)
    children.push_back(row_object(child));
  const auto mood = mood_of(r);
  return {{"name", os::valid_utf8(r.name)},
          {"kind", os::valid_utf8(r.kind)},
          {"state", os::valid_utf8(r.state)},
          {"phase", os::valid_utf8(r.phase)},
          {"troubled", mood == mood::bad || mood == mood::alert},
          {"uptime_ms", whole_milliseconds(r.uptime)},
          {"restarts", r.restarts},
          {"restarts_left", restarts_left(r)},
          {"mailbox", r.mailbox},
          {"unexpected", r.unexpected},
          {"budgets", std::move(budgets)},
          {"last_end", end_value(r.last_end)},
          {"children", std::move(children)}};
}

json::object head(const tree_asked& asked) {
  return {{"schema", tree_schema},
          {"master", asked.master},
          {"asked_at", asked.at},
          {"took_us", asked.took_us}};
}

} // namespace

std::string tree_json(const std::optional<sup::node_report>& tree, const tree_asked& asked) {
  auto document = head(asked);
  document["tree"] = tree ? json::value(row_object(*tree)) : json::value(nullptr);
  return json::serialize(document);
}

std::string tree_error_json(const std::string& why, const tree_asked& asked) {
  auto document = head(asked);
  document["error"] = os::valid_utf8(why);
  return json::serialize(document);
}

} // namespace troupe::launch
