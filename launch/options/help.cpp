#include "launch/options/argument_grammar.hpp"
#include "runtime/base/filled.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

/// What an argument grammar says about itself to people.
namespace troupe::launch {

namespace {

/// Lines that are longer are hard to read, and shorter ones leave no room beside the names.
constexpr std::size_t widest = 110, narrowest = 60;
constexpr std::size_t column = 28;

/// Text as wide as its terminal. A full last column makes some of them wrap.
class page {
 public:
  explicit page(std::size_t columns) : width_(std::min(std::max(columns, narrowest), widest) - 1) {}

  std::string filled(const std::string& text, std::size_t from) const {
    return troupe::filled(text, from, width_);
  }

  std::string line_of(const option& o) const {
    auto head = "  " + filled(fmt::format("{}{}{}", fmt::join(o.names, ", "),
                                          o.value.empty() ? "" : " ", o.value),
                              2);
    if (head.size() + 2 > column)
      head += "\n" + std::string(column, ' ');
    else
      head.resize(column, ' ');
    return head + filled(o.about, column) + "\n";
  }

 private:
  std::size_t width_;
};

} // namespace

std::string argument_grammar::help(std::size_t columns) const {
  return help(columns, most_used_);
}

std::string argument_grammar::help_all(std::size_t columns) const {
  return help(columns, {});
}

/// `named`: these options; none: all.
std::string argument_grammar::help(std::size_t columns, const std::set<std::string>& named) const {
  const page to(columns);
  auto text = fmt::format("Usage: {} {}\n", program_, usage_);
  for (const auto& v : verbs_)
    text += fmt::format("       {} {} [the same]\n", program_, v.name);
  text += fmt::format("\n{}\n", to.filled(about_, 0));
  if (!examples_.empty())
    text += "\nExamples\n";
  for (const auto& e : examples_)
    text += fmt::format("  {}:\n    {}\n", e.what, to.filled(e.line, 6));
  for (const auto& group : groups_) {
    std::string lines;
    for (const auto& o : group.options)
      if (named.empty() || named.count(o.names.back()))
        lines += to.line_of(o);
    if (!lines.empty())
      text += fmt::format("\n{}\n{}", group.title, lines);
  }
  return text;
}

} // namespace troupe::launch
