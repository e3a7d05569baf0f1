#include "runtime/os/stacks/file_systems.hpp"

#include "runtime/os/entries_of.hpp"
#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace troupe::os {

namespace {

constexpr std::size_t environment_max = 256u << 10, mounts_max = 1u << 20;

std::string link_of(const std::string& path) {
  std::array<char, 4'096> target{};
  const auto size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

bool is_open_for_writing(pid_t pid, const std::string& descriptor) {
  const auto text = kernel_text(fmt::format("/proc/{}/fdinfo/{}", pid, descriptor));
  const auto at = text.find("flags:");
  return at != text.npos && (std::strtoul(text.c_str() + at + 6, nullptr, 8) & 3) != 0;
}

std::string temporary_directory_of(pid_t pid) {
  const auto environment =
      '\0' + kernel_text(fmt::format("/proc/{}/environ", pid), environment_max);
  const std::string key = std::string(1, '\0') + "TMPDIR=";
  const auto at = environment.find(key);
  return at == environment.npos ? "/tmp" : environment.c_str() + at + key.size();
}

/// By the number of the device, from /proc/PID/mountinfo.
std::string mount_point_of(pid_t pid, dev_t device) {
  const auto mounts = kernel_text(fmt::format("/proc/{}/mountinfo", pid), mounts_max);
  const auto key = fmt::format(" {}:{} ", major(device), minor(device));
  const auto at = mounts.find(key);
  if (at == mounts.npos)
    return {};
  const auto root = at + key.size();
  const auto begin = mounts.find(' ', root);
  const auto end = begin == mounts.npos ? begin : mounts.find(' ', begin + 1);
  return end == mounts.npos ? std::string() : mounts.substr(begin + 1, end - begin - 1);
}

} // namespace

open_files open_files_of(pid_t pid) {
  open_files found;
  std::size_t looked_at = 0;
  constexpr std::string_view socket = "socket:[";
  for (const auto& entry : entries_of(fmt::format("/proc/{}/fd", pid))) {
    if (++looked_at > limits::stacks_descriptors_max)
      break;
    const auto target = link_of(entry.path().native());
    if (target.compare(0, socket.size(), socket) == 0)
      found.sockets.insert(std::strtoull(target.c_str() + socket.size(), nullptr, 10));
    else if (!target.empty() && target[0] == '/' && target.compare(0, 5, "/dev/") != 0 &&
             is_open_for_writing(pid, entry.path().filename().native()))
      found.written.push_back(entry.path().native());
  }
  return found;
}

std::vector<std::string> full_file_systems(pid_t pid, const std::vector<std::string>& written) {
  auto paths = written;
  paths.push_back(fmt::format("/proc/{}/cwd", pid));
  paths.push_back(fmt::format("/proc/{}/root{}", pid, temporary_directory_of(pid)));
  std::set<dev_t> seen;
  std::vector<std::string> full;
  for (const auto& path : paths) {
    struct stat file {};
    struct statvfs room {};
    if (::stat(path.c_str(), &file) != 0 || !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)) ||
        !seen.insert(file.st_dev).second || ::statvfs(path.c_str(), &room) != 0)
      continue;
    // Some of the kernel's own have no size, and none that is used up.
    if (room.f_blocks == 0 || (room.f_flag & ST_RDONLY) != 0)
      continue;
    if (static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize >= limits::stacks_full_below)
      continue;
    auto point = mount_point_of(pid, file.st_dev);
    full.push_back(point.empty() ? link_of(path) : std::move(point));
  }
  return full;
}

} // namespace troupe::os
