#include "launch/options/argument_grammar.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

/// What an argument grammar says about itself: the help text, and completion for shells.
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

/// Quoted for a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

struct completion_words {
  std::vector<std::string> options;
  /// Options with a fixed set of values.
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> choices;
};

std::string for_bash(const std::string& program, const completion_words& w) {
  const auto function = "_" + program;
  std::string text = fmt::format("{}() {{\n"
                                 "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
                                 "  case \"${{COMP_WORDS[COMP_CWORD-1]}}\" in\n",
                                 function);
  for (const auto& [names, values] : w.choices)
    text += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        fmt::join(names, "|"), fmt::join(values, " "));
  text += fmt::format("  esac\n"
                      "  if [[ $word == -* ]]; then\n"
                      "    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
                      "  else\n"
                      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
                      "  fi\n"
                      "}}\n"
                      "complete -o filenames -F {} {}\n",
                      fmt::join(w.options, " "), function, program);
  return text;
}

std::string for_tcsh(const std::string& program, const completion_words& w) {
  std::string text = fmt::format("complete {}", program);
  for (const auto& [names, values] : w.choices)
    for (const auto& name : names)
      text += fmt::format(" 'n/{}/({})/'", name, fmt::join(values, " "));
  std::vector<std::string> bare;
  for (const auto& name : w.options)
    if (name.compare(0, 2, "--") == 0)
      bare.push_back(name.substr(2));
  return text + fmt::format(" 'c/--/({})/' 'p/*/f/'\n", fmt::join(bare, " "));
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

std::string argument_grammar::completion(const std::string& shell) const {
  completion_words w;
  std::string zsh = fmt::format("#compdef {0}\n_arguments -S", program_);
  for (const auto& group : groups_)
    for (const auto& o : group.options) {
      if (!o.missing.empty())
        continue;
      w.options.insert(w.options.end(), o.names.begin(), o.names.end());
      if (!o.choices.empty())
        w.choices.emplace_back(o.names, o.choices);
      for (const auto& name : o.names) {
        auto about = o.about;
        for (const char special : {'[', ']', ':'})
          for (auto at = about.find(special); at != std::string::npos;
               at = about.find(special, at + 2))
            about.insert(at, 1, '\\');
        auto spec = fmt::format("*{}[{}]", name, about);
        if (!o.choices.empty())
          spec += fmt::format(":value:({})", fmt::join(o.choices, " "));
        else if (!o.value.empty())
          spec += o.value == "FILE" || o.value == "DIR" ? ":file:_files" : ":value: ";
        zsh += " \\\n  " + quoted(spec);
      }
    }
  if (shell == "bash")
    return for_bash(program_, w);
  if (shell == "tcsh")
    return for_tcsh(program_, w);
  return zsh + " \\\n  '1:script:_files' '*::argument:_files'\n";
}

} // namespace troupe::launch
