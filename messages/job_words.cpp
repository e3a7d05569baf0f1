#include "messages/job_words.hpp"

#include "messages/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace troupe::messages {

std::string job_word::in_words() const {
  if (flag)
    return name;
  // "--rdzv-conf join_timeout" is one of several settings of an option.
  return name.find(' ') == std::string::npos ? fmt::format("{} {}", name, value)
                                             : fmt::format("{}={}", name, value);
}

namespace {

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, value);
  return wrong == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

} // namespace

bool agree(const job_word& a, const job_word& b) {
  if (!a.content.empty() && !b.content.empty() && a.name != topology_option)
    return a.content == b.content;
  const auto one = number_in(a.value), other = number_in(b.value);
  return a.value == b.value || (one && one == other);
}

const job_word* find(const job_words& words, const std::string& name) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&name](const auto& w) { return w.name == name; });
  return found == words.end() ? nullptr : &*found;
}

std::string in_words(const job_words& words) {
  std::vector<std::string> each;
  each.reserve(words.size());
  for (const auto& w : words)
    each.push_back(w.in_words());
  return fmt::format("{}", fmt::join(each, ", "));
}

bool within_bounds(const job_words& words) {
  std::size_t bytes = 0;
  for (const auto& w : words)
    bytes += w.name.size() + w.value.size() + w.content.size();
  return words.size() <= limits::job_options_max && bytes <= limits::job_option_content_max;
}

job_words read_job_words(capnp::List<JobOption>::Reader list) {
  job_words words;
  words.reserve(list.size());
  for (const auto& each : list) {
    const auto content = each.getContent().asChars();
    words.push_back({each.getName().cStr(), each.getValue().cStr(), each.getFlag(),
                     each.getNodesAct(), std::string(content.begin(), content.end())});
  }
  return words;
}

void write_job_words(capnp::List<JobOption>::Builder list, const job_words& words) {
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(words[i].name);
    list[i].setValue(words[i].value);
    list[i].setFlag(words[i].flag);
    list[i].setNodesAct(words[i].nodes_act);
    const auto& content = words[i].content;
    list[i].setContent({reinterpret_cast<const kj::byte*>(content.data()), content.size()});
  }
}

} // namespace troupe::messages
