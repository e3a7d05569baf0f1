#include "runtime/os/net/descriptor_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/resource.h>

namespace troupe::os {

result<std::uint64_t> raise_descriptor_limit(std::uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return failure(errc::refused,
                   fmt::format("cannot read the limit of open files: {}", std::strerror(errno)));
  if (limit.rlim_cur >= wanted)
    return limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return failure(errc::refused, fmt::format("cannot raise the limit of open files to {}: {}",
                                              wanted, std::strerror(errno)));
  return limit.rlim_cur;
}

} // namespace troupe::os
