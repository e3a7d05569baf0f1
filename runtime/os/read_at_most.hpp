#pragma once

#include "runtime/os/process/unique_fd.hpp"

#include <tl/expected.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace troupe::os {

/// What a user's file has, up to more than `most` bytes, which its size then tells: neither a pipe
/// without a writer nor a device without an end holds the reader up. A writer that is there, as of
/// `<(command)`, has ten seconds for each piece. The error is one of errno's.
inline tl::expected<std::string, int> read_at_most(const std::string& path, std::size_t most) {
  constexpr int patience_ms = 10'000;
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return tl::make_unexpected(errno);
  std::string text;
  std::array<char, 64u << 10> some{};
  while (text.size() <= most) {
    const auto got = ::read(file.get(), some.data(), some.size());
    if (got < 0 && errno == EINTR)
      continue;
    pollfd writer{file.get(), POLLIN, 0};
    if (got < 0 && errno == EAGAIN && ::poll(&writer, 1, patience_ms) > 0)
      continue;
    if (got < 0)
      return tl::make_unexpected(errno);
    if (got == 0)
      break;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  return text;
}

} // namespace troupe::os
