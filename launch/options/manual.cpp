#include "launch/options/argument_grammar.hpp"
#include "launch/options/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

/// The options as documents that are read elsewhere, made from the same table as the help text.
namespace troupe::launch {

namespace {

std::string head_of(const option& o, const char* join) {
  return fmt::format("{}{}{}", fmt::join(o.names, join), o.value.empty() ? "" : " ", o.value);
}

/// groff takes a dash for a hyphen, and a line that begins with a dot or a quote for an order.
std::string in_groff(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '-' || c == '\\')
      out += c == '-' ? "\\-" : "\\e";
    else
      out += c;
  return out.empty() || (out[0] != '.' && out[0] != '\'') ? out : "\\&" + out;
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// In a cell of a table.
std::string in_markdown(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '|' || c == '<' || c == '*' ? std::string("\\") + c : std::string(1, c);
  return out;
}

/// Whether it has an option that is not of the program alone.
bool is_of_others(const option_group& group) {
  return std::any_of(group.options.begin(), group.options.end(),
                     [](const option& o) { return o.whose != scope::process; });
}

} // namespace

std::string argument_grammar::manual(const std::string& format) const {
  const bool groff = format == "man";
  auto text = groff ? fmt::format(".TH {} 1 \"\" \"troupe {}\"\n.SH NAME\n{} \\- {}\n"
                                  ".SH SYNOPSIS\n.B {}\n{}\n.SH DESCRIPTION\n{}\n",
                                  in_capitals(program_), version_number(), in_groff(program_),
                                  in_groff(about_.substr(0, about_.find('.'))), in_groff(program_),
                                  in_groff(usage_), in_groff(about_))
                    : fmt::format("# {}\n\n`{} {}`\n\n{}\n", program_, program_, usage_,
                                  in_markdown(about_));
  for (const auto& v : verbs_)
    text += groff ? fmt::format(".PP\n.B {} {}\nwith the same words: {}.\n", in_groff(program_),
                                in_groff(v.name), in_groff(v.about))
                  : fmt::format("\n`{} {}` with the same words: {}.\n", program_, v.name,
                                in_markdown(v.about));
  if (!examples_.empty())
    text += groff ? ".SH EXAMPLES\n" : "\n## Examples\n\n";
  for (const auto& e : examples_)
    text += groff ? fmt::format(".TP\n{}\n.B {}\n", in_groff(e.what), in_groff(e.line))
                  : fmt::format("- {}: `{}`\n", in_markdown(e.what), e.line);
  for (const auto& group : groups_) {
    const bool of_others = is_of_others(group);
    text += groff ? fmt::format(".SH {}\n", in_groff(in_capitals(group.title)))
                  : fmt::format("\n## {}\n\n| option | {}what it does |\n|---|{}---|\n",
                                group.title, of_others ? "whose | " : "", of_others ? "---|" : "");
    for (const auto& o : group.options)
      text += groff ? fmt::format(".TP\n.B {}\n{}\n", in_groff(head_of(o, ", ")), in_groff(o.about))
                    : fmt::format("| `{}` | {}{} |\n", head_of(o, "`, `"),
                                  of_others ? in_words(o.whose) + " | " : "", in_markdown(o.about));
  }
  return text;
}

} // namespace troupe::launch
