#include "runtime/os/stacks/kernel_files.hpp"

#include "runtime/os/entries_of.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace troupe::os {

namespace {

template<class T>
std::optional<T> number(std::string_view text, int base = 10) {
  T value{};
  const auto* end = text.data() + text.size();
  const auto [at, wrong] = std::from_chars(text.data(), end, value, base);
  return wrong == std::errc() && at == end ? std::optional<T>(value) : std::nullopt;
}

/// Takes the next word off the front.
std::string_view word(std::string_view& text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  const auto end = std::min(text.find(' ', begin), text.size());
  const auto found = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return found;
}

constexpr std::size_t mappings_bytes_max = 16u << 20;

std::optional<mapping> parse_mapping(std::string_view line) {
  mapping m;
  const auto range = word(line), rights = word(line), offset = word(line), device = word(line),
             inode = word(line);
  const auto dash = range.find('-'), colon = device.find(':');
  if (dash == range.npos || colon == device.npos || rights.size() < 4)
    return std::nullopt;
  const auto begin = number<std::uint64_t>(range.substr(0, dash), 16);
  const auto end = number<std::uint64_t>(range.substr(dash + 1), 16);
  const auto at = number<std::uint64_t>(offset, 16);
  const auto major_number = number<unsigned>(device.substr(0, colon), 16);
  const auto minor_number = number<unsigned>(device.substr(colon + 1), 16);
  const auto file = number<std::uint64_t>(inode);
  if (!begin || !end || *end <= *begin || !at || !major_number || !minor_number || !file)
    return std::nullopt;
  m.begin = *begin;
  m.end = *end;
  m.offset = *at;
  m.is_writable = rights[1] == 'w';
  m.is_executable = rights[2] == 'x';
  m.device = ::makedev(*major_number, *minor_number);
  m.inode = *file;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  m.path = line;
  return m;
}

} // namespace

std::string kernel_text(const std::string& path, std::size_t bytes_max) {
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  if (!file)
    return text;
  constexpr std::size_t at_once = 64u << 10;
  while (text.size() < bytes_max) {
    const auto had = text.size();
    text.resize(had + std::min(at_once, bytes_max - had));
    const auto got = ::read(file.get(), text.data() + had, text.size() - had);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0)
      break;
  }
  return text;
}

std::string first_line_of(const std::string& path) {
  auto text = kernel_text(path, limits::stacks_path_max);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::optional<thread_stat> parse_stat(std::string_view text) {
  // The name may hold blanks and parentheses; what follows the last one does not.
  const auto open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open)
    return std::nullopt;
  thread_stat s;
  s.name = text.substr(open + 1, close - open - 1);
  auto rest = text.substr(close + 1);
  const auto state = word(rest);
  if (state.size() != 1)
    return std::nullopt;
  s.state = state[0];
  constexpr int before_flags = 5, before_times = 4, before_start = 6;
  for (int n = 0; n < before_flags; ++n)
    (void)word(rest);
  const auto flags = number<std::uint64_t>(word(rest));
  for (int n = 0; n < before_times; ++n)
    (void)word(rest);
  const auto user = number<std::uint64_t>(word(rest)), system = number<std::uint64_t>(word(rest));
  for (int n = 0; n < before_start; ++n)
    (void)word(rest);
  const auto started = number<std::uint64_t>(word(rest));
  if (!flags || !user || !system || !started)
    return std::nullopt;
  constexpr std::uint64_t exiting = 4; // PF_EXITING of include/linux/sched.h
  s.exits = (*flags & exiting) != 0;
  s.cpu_ticks = *user + *system;
  s.started = *started;
  return s;
}

std::optional<thread_stat> stat_of(const std::string& directory) {
  return parse_stat(kernel_text(directory + "/stat"));
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  for (const auto& entry : entries_of(fmt::format("/proc/{}/task", pid)))
    if (const auto id = number<pid_t>(entry.path().filename().native()))
      if (threads.size() < limits::stacks_threads_max)
        threads.push_back(*id);
  std::sort(threads.begin(), threads.end());
  const auto main_thread = std::find(threads.begin(), threads.end(), pid);
  if (main_thread != threads.end())
    std::rotate(threads.begin(), main_thread, main_thread + 1);
  return threads;
}

std::vector<mapping> parse_mappings(std::string_view text) {
  std::vector<mapping> found;
  while (!text.empty() && found.size() < limits::stacks_mappings_max) {
    const auto end = std::min(text.find('\n'), text.size());
    if (auto m = parse_mapping(text.substr(0, end)))
      found.push_back(std::move(*m));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

result<std::vector<mapping>> mappings_of(pid_t pid) {
  const auto path = fmt::format("/proc/{}/maps", pid);
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    return failure(errno == EACCES || errno == EPERM ? errc::refused : errc::absent,
                   fmt::format("{} cannot be opened", path));
  auto found = parse_mappings(kernel_text(path, mappings_bytes_max));
  if (found.empty())
    return failure(errc::absent, fmt::format("process {} has no memory any more", pid));
  return found;
}

} // namespace troupe::os
