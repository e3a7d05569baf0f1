#include "launch/options/argument_grammar.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

/// What an argument grammar says about itself to people.
namespace troupe::launch {

namespace {

/// A terminal has 80 columns, and a full last one makes some of them wrap.
constexpr std::size_t width = 79;
constexpr std::size_t column = 28;

/// Words filled into lines between the columns `from` and `width`; the first line begins at `from`.
std::string filled(const std::string& text, std::size_t from) {
  std::string out;
  std::size_t at = from;
  for (const auto& word : split(text, ' ')) {
    if (at > from && at + 1 + word.size() > width) {
      out += "\n" + std::string(from, ' ');
      at = from;
    } else if (at > from) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out;
}

std::string line_of(const option& o) {
  auto head = "  " + filled(fmt::format("{}{}{}", fmt::join(o.names, ", "),
                                        o.value.empty() ? "" : " ", o.value),
                            2);
  if (head.size() + 2 > column)
    head += "\n" + std::string(column, ' ');
  else
    head.resize(column, ' ');
  return head + filled(o.about, column) + "\n";
}

} // namespace

std::string argument_grammar::help() const {
  auto text = fmt::format("Usage: {} {}\n\n{}\n", program_, usage_, filled(about_, 0));
  for (const auto& group : groups_) {
    text += fmt::format("\n{}\n", group.title);
    for (const auto& o : group.options)
      text += line_of(o);
  }
  return text;
}

} // namespace troupe::launch
