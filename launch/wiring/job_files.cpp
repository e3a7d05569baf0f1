#include "launch/wiring/job_files.hpp"

#include "launch/options/job_words.hpp"
#include "messages/limits.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::launch {

namespace {

/// Names and values of all options have the rest.
constexpr std::size_t file_max = limits::job_option_content_max / 2 - (8u << 10);

result<std::string> content_of(const std::string& path) {
  const os::unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return failure(errc::invalid, std::strerror(errno));
  std::string text;
  std::array<char, 16u << 10> some{};
  while (text.size() <= file_max) {
    const auto got = ::read(file.get(), some.data(), some.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return failure(errc::invalid, std::strerror(errno));
    if (got == 0)
      return text;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  return failure(errc::invalid, fmt::format("more than {} bytes", file_max));
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
