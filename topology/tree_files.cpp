#include "topology/tree_files.hpp"

#include "topology/limits.hpp"
#include "topology/place_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::topology {

namespace {

/// At most one more than a line may have: it may be long.
std::vector<std::string> words_of(std::string_view line) {
  constexpr std::string_view between = " \t\r";
  std::vector<std::string> words;
  while (words.size() < 4) {
    const auto begin = line.find_first_not_of(between);
    if (begin == std::string_view::npos)
      break;
    line.remove_prefix(begin);
    const auto end = std::min(line.find_first_of(between), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// Walks an object of switches or a list of what hangs from one.
class tree_reader {
 public:
  explicit tree_reader(json_problem& problem) : problem_(problem), places_(problem) {}

  void read(const json_value& part) {
    if (problem_.first())
      return;
    if (part.is == json_value::kind::object)
      for (const auto& member : part.inside)
        read_switch(member);
    else if (part.is == json_value::kind::array)
      for (const auto& one : part.inside)
        read(one);
    else if (part.is == json_value::kind::text)
      places_.add({part.text, above_}, part.line);
    else
      problem_.found(part.line, "expected a node's name, a list or an object of switches");
  }

  result<network_tree> tree() && { return std::move(places_).tree(); }

 private:
  void read_switch(const json_value& member) {
    if (member.is == json_value::kind::text)
      return problem_.found(
          member.line, fmt::format("what hangs from switch '{}' must be a list, or an object of "
                                   "further switches",
                                   member.name));
    above_.push_back(member.name);
    read(member);
    above_.pop_back();
  }

  json_problem& problem_;
  place_list places_;
  std::vector<std::string> above_;
};

} // namespace

result<network_tree> tree_of_lines(std::string_view text) {
  if (text.size() > limits::topology_text_max)
    return failure(errc::invalid, fmt::format("it has {} bytes; {} are allowed", text.size(),
                                              limits::topology_text_max));
  json_problem problem;
  place_list places(problem);
  for (std::uint32_t line = 1; !text.empty() && !problem.first(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty())
      continue;
    if (words.size() != 3)
      problem.found(line, fmt::format("expected three words, 'asw psw ip', found {}",
                                      words.size() > 3 ? "more" : std::to_string(words.size())));
    else
      places.add({std::move(words[2]), {std::move(words[1]), std::move(words[0])}}, line);
  }
  return std::move(places).tree();
}

result<network_tree> tree_of_json(const json_value& document) {
  json_problem problem;
  if (document.is == json_value::kind::text)
    problem.found(document.line, "expected a list or an object of switches");
  tree_reader reader(problem);
  reader.read(document);
  return std::move(reader).tree();
}

result<network_tree> tree_of_json(std::string_view text) {
  const auto document = located_json(text);
  if (!document)
    return tl::make_unexpected(document.error());
  return tree_of_json(*document);
}

} // namespace troupe::topology
