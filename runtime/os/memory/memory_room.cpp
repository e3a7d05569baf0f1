#include "runtime/os/memory/memory_room.hpp"

#include "runtime/os/contents_of.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>

namespace troupe::os {

namespace fs = std::filesystem;

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto found = std::from_chars(text.data(), text.data() + text.size(), value);
  return found.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

/// The number behind `key` in lines of "key number"; meminfo's keys end with a colon.
std::optional<std::uint64_t> value_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > key.size() && line.compare(0, key.size(), key) == 0 &&
        line[key.size()] == ' ')
      return number(std::string_view(line).substr(line.find_first_not_of(' ', key.size())));
  return std::nullopt;
}

/// The names of the files that say the same in the two versions of control groups.
struct dialect {
  const char *mount, *limit, *used, *droppable;
};
constexpr dialect version_2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr dialect version_1{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                            "memory.usage_in_bytes", "total_inactive_file"};

/// What one group leaves; nothing if it sets no limit.
std::optional<memory_room> left_by(const fs::path& group, const dialect& d) {
  const auto limit = number(contents_of(group / d.limit)),
             used = number(contents_of(group / d.used));
  if (!limit || !used)
    return std::nullopt;
  const auto droppable = value_of(contents_of(group / "memory.stat"), d.droppable).value_or(0);
  const auto needed = *used - std::min(*used, droppable);
  return memory_room{*limit - std::min(*limit, needed),
                     fmt::format("{} is {} MiB", (group / d.limit).string(), *limit >> 20), group};
}

/// This process's group by /proc/self/cgroup, whose lines are "number:controllers:path". In a
/// container the path may be one of the machine outside; then the mount itself is the group.
fs::path own_group(const fs::path& root, const dialect& d) {
  std::istringstream lines(contents_of(root / "proc/self/cgroup"));
  const auto mount = root / d.mount;
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos)
      continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controllers != (&d == &version_2 ? "" : "memory"))
      continue;
    const auto group = mount / fs::path(line.substr(second + 1)).relative_path();
    return fs::exists(group) ? group : mount;
  }
  return mount;
}

} // namespace

result<memory_room> find_memory_room(const fs::path& root) {
  const auto file = root / "proc/meminfo";
  const auto available = value_of(contents_of(file), "MemAvailable:");
  if (!available)
    return failure(errc::refused,
                   fmt::format("{} does not say how much memory is available", file.string()));
  memory_room least{*available << 10, "the machine has no more available"};
  for (const auto* d : {&version_2, &version_1}) {
    const auto mount = root / d->mount;
    for (auto group = own_group(root, *d);; group = group.parent_path()) {
      if (const auto left = left_by(group, *d); left && left->bytes < least.bytes)
        least = *left;
      if (group == mount || group == group.parent_path())
        break;
    }
  }
  return least;
}

} // namespace troupe::os
