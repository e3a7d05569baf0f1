#include "topology/located_json.hpp"

#include "topology/limits.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::topology {

namespace json = boost::json;

namespace {

/// Told of every value while the text is parsed; makes the tree of them.
class tree_builder {
 public:
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_object_size = max_array_size;
  static constexpr std::size_t max_string_size = max_array_size;
  static constexpr std::size_t max_key_size = max_array_size;

  std::uint32_t line = 1;
  json_problem problem;
  json_value root;
  prose texts = prose::refused;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code& wrong) { return open(json_value::kind::array, wrong); }
  bool on_array_end(std::size_t, json::error_code& wrong) { return close(wrong); }
  bool on_object_begin(json::error_code& wrong) { return open(json_value::kind::object, wrong); }
  bool on_object_end(std::size_t, json::error_code& wrong) {
    return members_differ(wrong) && close(wrong);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code& wrong) {
    return append(part, wrong);
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& wrong) {
    if (!append(part, wrong))
      return false;
    return add(std::exchange(is_prose_, false) ? json_value::kind::prose : json_value::kind::text,
               0, wrong);
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code& wrong) {
    return append_name(part, wrong);
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& wrong) {
    if (!append_name(part, wrong))
      return false;
    name_ = std::move(text_);
    text_.clear();
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, json::error_code& wrong) {
    return add(json_value::kind::number, number, wrong);
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code& wrong) {
    return add(json_value::kind::fraction, 0, wrong);
  }
  bool on_double(double, json::string_view, json::error_code& wrong) {
    return add(json_value::kind::fraction, 0, wrong);
  }
  bool on_bool(bool is, json::error_code& wrong) {
    return add(json_value::kind::boolean, is ? 1 : 0, wrong);
  }
  bool on_null(json::error_code& wrong) { return add(json_value::kind::null, 0, wrong); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool refuse(std::uint32_t at, std::string_view what, json::error_code& wrong) {
    problem.found(at, what);
    wrong = json::error::syntax;
    return false;
  }

  static bool has_control_characters(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char character) {
      return static_cast<unsigned char>(character) < 0x20 || character == 0x7f;
    });
  }

  bool append(json::string_view part, json::error_code& wrong) {
    if (is_prose_)
      return true;
    text_.append(part.data(), part.size());
    const bool too_long = text_.size() > limits::name_max;
    if (!too_long && !has_control_characters(text_))
      return true;
    if (texts == prose::refused)
      return refuse(line,
                    too_long ? fmt::format("a text has more than {} characters", limits::name_max)
                             : std::string("a text has control characters"),
                    wrong);
    is_prose_ = true;
    text_.clear();
    return true;
  }

  bool append_name(json::string_view part, json::error_code& wrong) {
    const auto most = texts == prose::refused ? limits::name_max : limits::topology_member_max;
    text_.append(part.data(), part.size());
    if (text_.size() > most)
      return refuse(line, fmt::format("a text has more than {} characters", most), wrong);
    if (has_control_characters(text_))
      return refuse(line, "a text has control characters", wrong);
    return true;
  }

  bool count(json::error_code& wrong) {
    if (++values_ > limits::topology_values_max)
      return refuse(line, fmt::format("more than {} values", limits::topology_values_max), wrong);
    return true;
  }

  json_value begun(json_value::kind kind) {
    json_value made;
    made.is = kind;
    made.line = line;
    made.name = std::move(name_);
    name_.clear();
    return made;
  }

  bool open(json_value::kind kind, json::error_code& wrong) {
    open_.push_back(begun(kind));
    return count(wrong);
  }

  bool add(json_value::kind kind, std::int64_t number, json::error_code& wrong) {
    auto made = begun(kind);
    made.number = number;
    made.text = std::move(text_);
    text_.clear();
    place(std::move(made));
    return count(wrong);
  }

  bool close(json::error_code&) {
    auto done = std::move(open_.back());
    open_.pop_back();
    place(std::move(done));
    return true;
  }

  void place(json_value made) {
    if (open_.empty())
      root = std::move(made);
    else
      open_.back().inside.push_back(std::move(made));
  }

  bool members_differ(json::error_code& wrong) {
    std::vector<const json_value*> members;
    for (const auto& member : open_.back().inside)
      members.push_back(&member);
    std::stable_sort(members.begin(), members.end(),
                     [](const auto* a, const auto* b) { return a->name < b->name; });
    const auto twice =
        std::adjacent_find(members.begin(), members.end(),
                           [](const auto* a, const auto* b) { return a->name == b->name; });
    if (twice == members.end())
      return true;
    return refuse(twice[1]->line,
                  fmt::format("'{}' is on line {} already", twice[1]->name, twice[0]->line), wrong);
  }

  std::vector<json_value> open_;
  std::string text_, name_;
  bool is_prose_ = false; ///< the text that is being read
  std::size_t values_ = 0;
};

json::parse_options strict() {
  json::parse_options options;
  options.max_depth = limits::topology_nesting_max;
  return options;
}

const std::vector<json_value> nothing;

} // namespace

error at_line(std::uint32_t line, std::string_view what) {
  return {errc::invalid, fmt::format("line {}: {}", line, what)};
}

result<json_value> located_json(std::string_view text, prose texts) {
  if (text.size() > limits::topology_text_max)
    return failure(errc::invalid, fmt::format("it has {} bytes; {} are allowed", text.size(),
                                              limits::topology_text_max));
  json::basic_parser<tree_builder> parser(strict());
  auto& builder = parser.handler();
  builder.texts = texts;
  json::error_code wrong;
  // Line by line: so the builder knows where it is.
  while (!wrong && !text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    const auto used = parser.write_some(true, text.data(), end, wrong);
    if (!wrong && used < end) // after the end of the document
      wrong = json::error::extra_data;
    if (wrong)
      break;
    text.remove_prefix(end);
    ++builder.line;
  }
  if (!wrong)
    parser.write_some(false, text.data(), 0, wrong);
  if (builder.problem.first())
    return tl::make_unexpected(*builder.problem.first());
  if (wrong)
    return tl::make_unexpected(at_line(builder.line, "is no JSON: " + wrong.message()));
  return std::move(builder.root);
}

json_members::json_members(const json_value& of, std::string_view what, json_problem& problem)
    : of_(of), what_(what), problem_(problem) {
  if (of.is != json_value::kind::object)
    problem_.found(of.line, fmt::format("{} is no object", what));
}

const json_value* json_members::find(std::string_view name) const {
  if (of_.is == json_value::kind::object)
    for (const auto& member : of_.inside)
      if (member.name == name)
        return &member;
  return nullptr;
}

const json_value* json_members::expect(std::string_view name, json_value::kind kind,
                                       std::string_view called) {
  const auto* member = find(name);
  if (member == nullptr)
    problem_.found(of_.line, fmt::format("{} has no '{}'", what_, name));
  else if (kind == json_value::kind::text && member->is == json_value::kind::prose)
    problem_.found(member->line,
                   fmt::format("'{}' of {} has more than {} characters, or control characters",
                               name, what_, limits::name_max));
  else if (member->is != kind)
    problem_.found(member->line, fmt::format("'{}' of {} is no {}", name, what_, called));
  else
    return member;
  return nullptr;
}

std::string json_members::text(std::string_view name) {
  const auto* member = expect(name, json_value::kind::text, "text");
  return member == nullptr ? std::string() : member->text;
}

std::string json_members::optional_text(std::string_view name) {
  return find(name) == nullptr ? std::string() : text(name);
}

std::uint32_t json_members::number_in_text(std::string_view name) {
  const auto* member = expect(name, json_value::kind::text, "text");
  if (member == nullptr)
    return 0;
  std::uint64_t number = 0;
  for (const auto character : member->text)
    if (character < '0' || character > '9' || number > std::numeric_limits<std::uint32_t>::max())
      number = std::numeric_limits<std::uint64_t>::max();
    else
      number = number * 10 + static_cast<std::uint64_t>(character - '0');
  if (!member->text.empty() && number <= std::numeric_limits<std::uint32_t>::max())
    return static_cast<std::uint32_t>(number);
  problem_.found(member->line,
                 fmt::format("'{}' of {} is '{}', no number", name, what_, member->text));
  return 0;
}

std::uint32_t json_members::number(std::string_view name) {
  const auto* member = expect(name, json_value::kind::number, "whole number");
  if (member == nullptr)
    return 0;
  if (member->number >= 0 && member->number <= std::numeric_limits<std::uint32_t>::max())
    return static_cast<std::uint32_t>(member->number);
  problem_.found(member->line,
                 fmt::format("'{}' of {} is {}; 0 to {} are allowed", name, what_, member->number,
                             std::numeric_limits<std::uint32_t>::max()));
  return 0;
}

const std::vector<json_value>& json_members::list(std::string_view name) {
  const auto* member = expect(name, json_value::kind::array, "list");
  return member == nullptr ? nothing : member->inside;
}

const std::vector<json_value>& json_members::optional_list(std::string_view name) {
  return has(name) ? list(name) : nothing;
}

const json_value* json_members::object(std::string_view name) {
  return expect(name, json_value::kind::object, "object");
}

const json_value* json_members::optional_object(std::string_view name) {
  return has(name) ? object(name) : nullptr;
}

std::uint32_t json_members::line_of(std::string_view name) const {
  const auto* member = find(name);
  return member == nullptr ? of_.line : member->line;
}

} // namespace troupe::topology
