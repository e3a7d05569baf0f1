#include "launch/wiring/job_files.hpp"

#include "launch/options/job_words.hpp"
#include "messages/limits.hpp"
#include "runtime/os/read_at_most.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

namespace troupe::launch {

namespace {

/// Names and values of all options have the rest.
constexpr std::size_t file_max = limits::job_option_content_max / 2 - (8u << 10);

result<std::string> content_of(const std::string& path) {
  auto text = os::read_at_most(path, file_max);
  if (!text)
    return failure(errc::invalid, std::strerror(text.error()));
  if (text->size() > file_max)
    return failure(errc::invalid, fmt::format("more than {} bytes", file_max));
  return std::move(*text);
}

} // namespace

result<messages::job_words> with_files(messages::job_words words) {
  for (auto& word : words) {
    const bool needed = word.name == elasticity_option;
    if (word.value.empty() || (!needed && word.name != topology_option))
      continue;
    auto content = content_of(word.value);
    if (content)
      word.content = std::move(*content);
    else if (needed)
      return failure(errc::invalid,
                     fmt::format("{} {}: {}", word.name, word.value, content.error().what));
  }
  return words;
}

} // namespace troupe::launch
