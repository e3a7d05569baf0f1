#include "launch/options/argument_grammar.hpp"

#include "launch/options/nearest.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::launch {

taker into(std::string& target) {
  return [&target](const std::string& text) {
    target = text;
    return std::nullopt;
  };
}

taker into(std::optional<std::string>& target) {
  return [&target](const std::string& text) {
    target = text;
    return std::nullopt;
  };
}

namespace {

template<class Number, class Target>
taker number_into(Target& target, std::optional<Number> (*read)(const std::string&),
                  const char* what) {
  return [&target, read, what](const std::string& text) -> std::optional<std::string> {
    const auto n = read(text);
    if (!n)
      return what;
    target = *n;
    return std::nullopt;
  };
}

constexpr auto whole_number = "a whole number";

} // namespace

taker into(std::int64_t& target) {
  return number_into(target, python_int, whole_number);
}

taker into(std::optional<std::int64_t>& target) {
  return number_into(target, python_int, whole_number);
}

taker into(double& target) {
  return number_into(target, python_float, "a number");
}

taker into(bool& target) {
  return [&target](const std::string&) {
    target = true;
    return std::nullopt;
  };
}

std::string in_words(scope s) {
  switch (s) {
  case scope::process:
    return {};
  case scope::worker:
    return "worker";
  case scope::node:
    return "node";
  case scope::job:
    return "job";
  case scope::both:
    return "job, node";
  case scope::master:
    return "master";
  }
  return {};
}

option often(std::vector<std::string> usual, option o) {
  o.usual = std::move(usual);
  return o;
}

option among(std::vector<std::string> choices, option o) {
  o.choices = std::move(choices);
  return o;
}

option several(std::function<bool(const std::string&)> goes_on, option o) {
  o.goes_on = std::move(goes_on);
  return o;
}

option typed_only(option o) {
  o.preset = false;
  return o;
}

option without(std::string what_is_missing, option o) {
  o.missing = std::move(what_is_missing);
  return o;
}

option in_full(option o) {
  o.abbreviable = false;
  return o;
}

option_group in_full(option_group group) {
  for (auto& o : group.options)
    o.abbreviable = false;
  return group;
}

namespace {

/// A long name with all of one character.
std::string spelled(std::string name, char instead_of, char character) {
  std::replace(name.begin() + 2, name.end(), instead_of, character);
  return name;
}

const std::string& long_name(const option& o) {
  const auto is_long = [](const std::string& name) { return name.compare(0, 2, "--") == 0; };
  const auto found = std::find_if(o.names.begin(), o.names.end(), is_long);
  return found == o.names.end() ? o.names.front() : *found;
}

std::string environment_name(const option& o) {
  auto name = spelled(long_name(o), '-', '_').substr(2);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return "PET_" + name;
}

/// "-1", "-.5": argparse takes them for values, since no option looks like that.
bool looks_negative(const std::string& word) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto dot = std::find(word.begin() + 1, word.end(), '.');
  const auto digits = [&](auto from, auto to) { return std::all_of(from, to, is_digit); };
  if (dot == word.end())
    return word.size() > 1 && digits(word.begin() + 1, word.end());
  return digits(word.begin() + 1, dot) && dot + 1 != word.end() && digits(dot + 1, word.end());
}

/// `source` is where the value was found: the option as it was written, or its variable.
std::optional<std::string> validation_error(const option& o, const std::string& source,
                                            const std::string& value) {
  if (!o.missing.empty())
    return fmt::format("{}: {}", source, o.missing);
  if (!o.choices.empty() && std::find(o.choices.begin(), o.choices.end(), value) == o.choices.end())
    return fmt::format("{}: '{}' is none of {}", source, value, fmt::join(o.choices, ", "));
  if (const auto expected = o.take ? o.take(value) : std::nullopt)
    return fmt::format("{}: '{}' is not {}", source, value, *expected);
  return std::nullopt;
}

} // namespace

argument_grammar::argument_grammar(std::string program, std::string usage, std::string about)
    : program_(std::move(program)), usage_(std::move(usage)), about_(std::move(about)) {}

void argument_grammar::add(option_group group) {
  for (std::size_t i = 0; i < group.options.size(); ++i)
    for (const auto& name : group.options[i].names) {
      const std::pair place{groups_.size(), i};
      spellings_[name] = place;
      if (name.compare(0, 2, "--") != 0)
        continue;
      spellings_[spelled(name, '-', '_')] = place;
      spellings_[spelled(name, '_', '-')] = place;
    }
  groups_.push_back(std::move(group));
}

const option* argument_grammar::named(const std::string& spelling) const {
  const auto found = spellings_.find(spelling);
  if (found == spellings_.end())
    return nullptr;
  return &groups_[found->second.first].options[found->second.second];
}

std::optional<scope> argument_grammar::scope_of(const std::string& name) const {
  const auto* found = named(name);
  return found && long_name(*found) == name ? std::optional(found->whose) : std::nullopt;
}

/// What one word is.
struct argument_grammar::meaning {
  enum class kind { word, known, unknown, ambiguous } what = kind::word;
  const option* known = nullptr;
  std::string spelling;
  std::optional<std::string> value;
  std::vector<std::string> candidates;
};

/// An option as it was used.
struct argument_grammar::spoken {
  const option* what = nullptr;
  std::string spelling;
  std::string value = "1";
  /// Not empty: what is wrong with how it was written.
  std::string wrong;
};

struct argument_grammar::sentence {
  std::vector<spoken> options;
  std::vector<std::string> unknown;
  std::vector<std::string> rest;
  std::optional<refusal> ambiguous;
};

argument_grammar::meaning argument_grammar::recognize(const std::string& word) const {
  using kind = meaning::kind;
  if (word.size() < 2 || word.front() != '-')
    return {};
  if (const auto* o = named(word))
    return {kind::known, o, word, std::nullopt, {}};
  const auto equals = word.find('=');
  const auto name = word.substr(0, equals);
  const auto value =
      equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1));
  if (const auto* o = named(name); o && value)
    return {kind::known, o, name, value, {}};
  if (word[1] != '-') {
    // Its value may stand right behind a short option.
    if (const auto* o = named(word.substr(0, 2)))
      return {kind::known, o, word.substr(0, 2), word.substr(2), {}};
  } else {
    meaning f{kind::known, nullptr, {}, value, {}};
    for (auto at = spellings_.lower_bound(name);
         at != spellings_.end() && at->first.compare(0, name.size(), name) == 0; ++at) {
      const auto* o = named(at->first);
      if (!o->abbreviable || o == f.known)
        continue;
      f.known = o;
      f.spelling = long_name(*o);
      f.candidates.push_back(f.spelling);
    }
    std::sort(f.candidates.begin(), f.candidates.end());
    f.candidates.erase(std::unique(f.candidates.begin(), f.candidates.end()), f.candidates.end());
    if (f.candidates.size() > 1)
      f.what = kind::ambiguous;
    if (f.known)
      return f;
  }
  if (looks_negative(word) || word.find(' ') != std::string::npos)
    return {};
  return {kind::unknown, nullptr, word, std::nullopt, {}};
}

std::size_t argument_grammar::read_option(const std::vector<std::string>& arguments, std::size_t at,
                                          meaning f, sentence& out) const {
  // Short flags may stand together: -mr3.
  while (f.known->value.empty() && f.value) {
    const bool is_short = f.spelling[1] != '-';
    const auto next = is_short && !f.value->empty() ? std::string("-") + f.value->front() : "";
    const auto* o = next.empty() ? nullptr : named(next);
    if (!o) {
      out.options.push_back(
          {f.known, f.spelling, {}, fmt::format("{} takes no value", f.spelling)});
      return arguments.size();
    }
    out.options.push_back({f.known, f.spelling});
    auto behind = f.value->substr(1);
    f.known = o;
    f.spelling = next;
    f.value = behind.empty() ? std::nullopt : std::optional(std::move(behind));
  }
  if (f.known->value.empty()) {
    out.options.push_back({f.known, f.spelling});
    return at + 1;
  }
  const auto further = [&](std::size_t next) {
    for (; f.known->goes_on && next < arguments.size() && f.known->goes_on(arguments[next]); ++next)
      out.options.back().value += " " + arguments[next];
    return next;
  };
  if (f.value) {
    out.options.push_back({f.known, f.spelling, *f.value, {}});
    return further(at + 1);
  }
  const bool there = at + 1 < arguments.size() && arguments[at + 1] != "--" &&
                     recognize(arguments[at + 1]).what == meaning::kind::word;
  if (!there) {
    out.options.push_back({f.known, f.spelling, {}, fmt::format("{} needs a value", f.spelling)});
    return arguments.size();
  }
  out.options.push_back({f.known, f.spelling, arguments[at + 1], {}});
  return further(at + 2);
}

argument_grammar::sentence argument_grammar::read(const std::vector<std::string>& arguments) const {
  using kind = meaning::kind;
  sentence out;
  std::size_t at = 0;
  while (at < arguments.size()) {
    const auto& word = arguments[at];
    if (word == "--") {
      out.rest.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
      return out;
    }
    auto f = recognize(word);
    if (f.what == kind::word) {
      out.rest.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
      // argparse swallows the first -- wherever it stands between or right behind its own words.
      if (out.rest.size() > 1 && out.rest[1] == "--")
        out.rest.erase(out.rest.begin() + 1);
      return out;
    }
    if (f.what == kind::ambiguous) {
      out.ambiguous =
          refusal{fmt::format("'{}' may be any of {}", word, fmt::join(f.candidates, ", "))};
      return out;
    }
    if (f.what == kind::unknown) {
      out.unknown.push_back(word);
      ++at;
    } else {
      at = read_option(arguments, at, std::move(f), out);
    }
  }
  return out;
}

std::optional<refusal>
argument_grammar::preset(const std::map<std::string, std::string>& environment,
                         const std::vector<const option*>& already, bool flags,
                         positional& out) const {
  for (const auto& group : groups_)
    for (const auto& o : group.options) {
      if (!o.preset || o.answer || o.value.empty() != flags ||
          std::find(already.begin(), already.end(), &o) != already.end())
        continue;
      const auto name = environment_name(o);
      const auto found = environment.find(name);
      if (found == environment.end())
        continue;
      auto value = found->second;
      if (flags) {
        const auto number = python_int(value);
        if (!number)
          return refusal{fmt::format("{}: '{}' is not a whole number (0 no, 1 yes)", name, value)};
        if (*number == 0)
          continue;
        value = "1";
      }
      if (auto wrong = validation_error(o, name, value))
        return refusal{std::move(*wrong)};
      out.variables[long_name(o)] = name;
      out.said.insert_or_assign(long_name(o), given{value, o.whose, flags});
    }
  return std::nullopt;
}

/// The line begins with the option's name, and says then what is wrong.
refusal argument_grammar::by_its_source(refusal about,
                                        const std::map<std::string, std::string>& variables) {
  const auto end = std::min(about.what.find_first_of(": "), about.what.size());
  const auto found = variables.find(about.what.substr(0, end));
  if (found != variables.end())
    about.what.replace(0, end, found->second);
  return about;
}

std::string argument_grammar::unknown_option(const std::string& word) const {
  // Two characters at least: "-=x" is no name with a value.
  const auto name = word.substr(0, word.find('=', 2));
  std::vector<std::string> known;
  for (const auto& group : groups_)
    for (const auto& o : group.options)
      known.push_back(long_name(o));
  const auto meant = nearest(spelled(name, '_', '-'), known);
  return meant.empty()
             ? fmt::format("unknown option {} (see --help)", word)
             : fmt::format("unknown option {}; did you mean {}? (see --help)", name, meant);
}

std::variant<argument_grammar::positional, just_print, refusal>
argument_grammar::parse(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment) const {
  positional out;
  if (auto wrong = preset(environment, {}, true, out))
    return *wrong;
  auto said = read(arguments);
  if (said.ambiguous)
    return *said.ambiguous;
  std::vector<const option*> already;
  for (const auto& s : said.options) {
    if (!s.wrong.empty())
      return refusal{s.wrong};
    if (auto wrong = validation_error(*s.what, s.spelling, s.value))
      return refusal{std::move(*wrong)};
    if (s.what->answer)
      return just_print{s.what->answer(s.value)};
    already.push_back(s.what);
    out.said.insert_or_assign(long_name(*s.what),
                              given{s.value, s.what->whose, s.what->value.empty()});
  }
  if (auto wrong = preset(environment, already, false, out))
    return *wrong;
  if (!said.unknown.empty())
    return refusal{unknown_option(said.unknown.front())};
  out.rest = std::move(said.rest);
  return out;
}

} // namespace troupe::launch
