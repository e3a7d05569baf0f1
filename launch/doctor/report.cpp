#include "launch/doctor/report.hpp"

#include "launch/shell/columns.hpp"
#include "runtime/base/filled.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace troupe::launch::doctor {

namespace {

constexpr std::size_t grade_columns = 9;
constexpr std::size_t subject_columns = 19;
constexpr std::size_t text_from = grade_columns + subject_columns;

/// Up to the page's end; the first line begins behind `head`.
std::string filled(const std::string& head, const std::string& text, const page& p) {
  return head + troupe::filled(os::printable(text), text_from, p.columns) + "\n";
}

std::string coloured(grade g, const std::string& text, const page& p) {
  const auto* code = g == grade::error     ? "31"
                     : g == grade::warning ? "33"
                     : g == grade::note    ? "36"
                                           : "32";
  return p.colours ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string counted(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

} // namespace

const char* to_string(grade g) {
  switch (g) {
  case grade::ok:
    return "ok";
  case grade::note:
    return "note";
  case grade::warning:
    return "warning";
  case grade::error:
    break;
  }
  return "error";
}

std::string text_of(const finding& f, const page& p) {
  if (p.quiet && f.how < grade::warning)
    return {};
  const std::string margin(text_from, ' ');
  auto text = filled(coloured(f.how, fitted(to_string(f.how), grade_columns), p) +
                         fitted(f.subject, subject_columns),
                     f.found, p);
  if (!f.costs.empty())
    text += filled(margin, "costs: " + f.costs, p);
  if (!f.remedy.empty())
    text += filled(margin, "do: " + f.remedy, p);
  return text;
}

std::string json_of(const finding& f) {
  const boost::json::object object{{"subject", os::valid_utf8(f.subject)},
                                   {"grade", to_string(f.how)},
                                   {"found", os::valid_utf8(f.found)},
                                   {"costs", os::valid_utf8(f.costs)},
                                   {"remedy", os::valid_utf8(f.remedy)}};
  return boost::json::serialize(object);
}

std::string summary_of(const findings& all) {
  std::vector<std::string> stops;
  std::size_t warnings = 0;
  for (const auto& f : all) {
    warnings += f.how == grade::warning ? 1 : 0;
    if (f.how == grade::error)
      stops.push_back(f.subject);
  }
  const auto rest = warnings == 0 ? std::string() : " (" + counted(warnings, "warning") + ")";
  if (stops.empty())
    return fmt::format("nothing here would stop the job{}", rest);
  return fmt::format("{} would stop the job{}: {}", counted(stops.size(), "error"), rest,
                     fmt::join(stops, ", "));
}

int exit_code_of(const findings& all) {
  const auto stops = [](const finding& f) { return f.how == grade::error; };
  return std::any_of(all.begin(), all.end(), stops) ? 1 : 0;
}

} // namespace troupe::launch::doctor
