#include "metrics/exposition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace troupe::metrics {

namespace {

/// From a process that starts at once to a checkpoint read over a slow network.
constexpr std::array bounds{0.01, 0.025, 0.05, 0.1, 0.25, 0.5,  1.0,  2.5,
                            5.0,  10.0,  25.0, 60., 120., 300., 600., 1800.};

std::string escaped(const std::string& text, bool quotes) {
  std::string out;
  for (const char c : text)
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || (quotes && c == '"'))
      (out += '\\') += c;
    else
      out += c;
  return out;
}

} // namespace

void duration_histogram::observe(double seconds) {
  counts_.resize(bounds.size() + 1);
  const auto at = std::lower_bound(bounds.begin(), bounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(at - bounds.begin())];
  sum_ += seconds;
  ++count_;
}

void exposition::begin(const std::string& name, const std::string& help, const char* type) {
  family_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
}

void exposition::sample(const duration_histogram& h, const labels& of_this) {
  std::uint64_t so_far = 0;
  for (std::size_t n = 0; n <= bounds.size(); ++n) {
    so_far += n < h.counts_.size() ? h.counts_[n] : 0;
    auto with_bound = of_this;
    with_bound.emplace_back("le", n < bounds.size() ? fmt::format("{}", bounds[n]) : "+Inf");
    write("_bucket", static_cast<double>(so_far), with_bound);
  }
  write("_sum", h.sum_, of_this);
  write("_count", static_cast<double>(h.count_), of_this);
}

void exposition::write(const char* suffix, double value, const labels& of_this) {
  text_ += family_;
  text_ += suffix;
  const char* before = "{";
  for (const auto* some : std::initializer_list<const labels*>{&of_all_, &of_this})
    for (const auto& [name, content] : *some) {
      text_ += fmt::format("{}{}=\"{}\"", before, name, escaped(content, true));
      before = ",";
    }
  text_ += fmt::format("{} {}\n", *before == ',' ? "}" : "", value);
}

} // namespace troupe::metrics
