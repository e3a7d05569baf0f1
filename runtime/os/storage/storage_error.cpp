#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::os {

namespace {

struct advice {
  int number;
  errc code;
  const char* what_to_do;
};

constexpr std::array advices{
    advice{ENOENT, errc::absent, ""},
    advice{ESTALE, errc::absent, ""}, // a network file system's ENOENT
    advice{EACCES, errc::refused, "; give this user the right to it, or choose another directory"},
    advice{EPERM, errc::refused, "; give this user the right to it, or choose another directory"},
    advice{EROFS, errc::refused, "; mount it for writing, or choose another directory"},
    advice{EFBIG, errc::refused, "; see `ulimit -f` and what the file system allows"},
    advice{ENOTDIR, errc::refused, "; a part of its path is a file"},
    advice{EISDIR, errc::refused, "; a directory has this name"},
    advice{ENAMETOOLONG, errc::refused, ""},
    advice{ELOOP, errc::refused, ""},
    advice{ENOSPC, errc::unavailable, "; make room, or keep fewer steps"},
    advice{EDQUOT, errc::unavailable, "; make room, or keep fewer steps"},
    advice{EIO, errc::unavailable, "; the kernel's log says more about the disk"},
};

} // namespace

error storage_error(const char* what, const std::string& path, int number) {
  // As the kernel says of sockets; of a FIFO or a device file_ops does.
  if (number == ENXIO)
    return {errc::refused, fmt::format("'{}' cannot be {}: it is no regular file (a FIFO, a socket "
                                       "or a device)",
                                       path, what)};
  for (const auto& known : advices)
    if (known.number == number)
      return {known.code, fmt::format("'{}' cannot be {}: {}{}", path, what, std::strerror(number),
                                      known.what_to_do)};
  return {errc::unavailable,
          fmt::format("'{}' cannot be {}: {}", path, what, std::strerror(number))};
}

error write_error(file_ops& files, const std::string& path, std::uint64_t bytes, int number) {
  if (number != ENOSPC)
    return storage_error("written", path, number);
  const auto free = files.free_bytes(path.substr(0, path.rfind('/') + 1));
  if (bytes <= free) // space was freed meanwhile, or this user has a quota
    return storage_error("written", path, number);
  return {
      errc::unavailable,
      fmt::format("'{}' cannot be written: {} are missing on the disk ({} needed, {} free); make "
                  "room, or keep fewer steps",
                  path, in_words(bytes - free), in_words(bytes), in_words(free))};
}

std::string in_words(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

} // namespace troupe::os
