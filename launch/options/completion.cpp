#include "launch/options/argument_grammar.hpp"
#include "launch/options/join_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

/// What shells complete: options, and the values of those that take certain ones.
namespace troupe::launch {

namespace {

struct completion_words {
  std::vector<std::string> options;
  /// What the first word may be instead of a file.
  std::vector<std::string> verbs;
  /// Options with a fixed set of values.
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> choices;
};

std::string for_bash(const std::string& program, const completion_words& w) {
  const auto function = "_" + program;
  const auto first_word = w.verbs.empty()
                              ? std::string()
                              : fmt::format("    if [[ $COMP_CWORD == 1 ]]; then\n"
                                            "      COMPREPLY+=($(compgen -W '{}' -- \"$word\"))\n"
                                            "    fi\n",
                                            fmt::join(w.verbs, " "));
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
                      "{}"
                      "  fi\n"
                      "}}\n"
                      "complete -o filenames -F {} {}\n",
                      fmt::join(w.options, " "), first_word, function, program);
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

/// Zsh and fish show it beside the option, and each has characters of its own in it.
std::string escaped(std::string about, const std::string& specials) {
  for (auto at = about.find_first_of(specials); at != std::string::npos;
       at = about.find_first_of(specials, at + 2))
    about.insert(at, 1, '\\');
  return about;
}

bool is_path(const option& o) {
  return o.value == "FILE" || o.value == "DIR" || o.value == "PATH";
}

std::string for_zsh(const std::string& program, const std::vector<const option*>& options,
                    const std::vector<std::string>& verbs) {
  auto text = fmt::format("#compdef {}\n_arguments -S", program);
  for (const auto* o : options)
    for (const auto& name : o->names) {
      auto spec = fmt::format("*{}[{}]", name, escaped(o->about, "[]:"));
      if (const auto& values = o->completed(); !values.empty())
        spec += fmt::format(":value:({})", fmt::join(values, " "));
      else if (!o->value.empty())
        spec += is_path(*o) ? ":file:_files" : ":value: ";
      text += " \\\n  " + shell_word(spec);
    }
  const auto first = verbs.empty()
                         ? std::string("_files")
                         : fmt::format("{{compadd -- {}; _files}}", fmt::join(verbs, " "));
  return text + fmt::format(" \\\n  '1:script:{}' '*::argument:_files'\n", first);
}

std::string for_fish(const std::string& program, const std::vector<const option*>& options,
                     const std::vector<verb>& verbs) {
  std::string text;
  for (const auto& v : verbs)
    text += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", program, v.name,
                        shell_word(v.about));
  for (const auto* o : options) {
    text += fmt::format("complete -c {}", program);
    for (const auto& name : o->names)
      text += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (const auto& values = o->completed(); !values.empty())
      text += fmt::format(" -x -a {}", shell_word(fmt::format("{}", fmt::join(values, " "))));
    else if (!o->value.empty())
      text += is_path(*o) ? " -r -F" : " -x";
    text += fmt::format(" -d {}\n", shell_word(o->about));
  }
  return text;
}

} // namespace

const std::vector<std::string>& option::completed() const {
  return choices.empty() ? usual : choices;
}

std::string argument_grammar::completion(const std::string& shell) const {
  std::vector<const option*> known;
  completion_words w;
  for (const auto& v : verbs_)
    w.verbs.push_back(v.name);
  for (const auto& group : groups_)
    for (const auto& o : group.options) {
      if (!o.missing.empty())
        continue;
      known.push_back(&o);
      w.options.insert(w.options.end(), o.names.begin(), o.names.end());
      if (!o.completed().empty())
        w.choices.emplace_back(o.names, o.completed());
    }
  if (shell == "bash")
    return for_bash(program_, w);
  if (shell == "tcsh")
    return for_tcsh(program_, w);
  return shell == "fish" ? for_fish(program_, known, verbs_) : for_zsh(program_, known, w.verbs);
}

} // namespace troupe::launch
