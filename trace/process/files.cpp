#include "trace/process/files.hpp"

#include "trace/core/text.hpp"
#include "trace/limits.hpp"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::trace {

namespace {

bool write_all(int file, std::string_view words) {
  while (!words.empty()) {
    const auto written = write(file, words.data(), words.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    words.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

} // namespace

bool make_directory(const char* path) {
  if (mkdir(path, 0755) == 0)
    return true;
  struct stat about {};
  if (errno != EEXIST || stat(path, &about) != 0)
    return false;
  errno = ENOTDIR;
  return S_ISDIR(about.st_mode);
}

bool replace_file(const char* directory, const char* name, std::string_view words) {
  std::array<char, limits::path_max + 128> to{}, from{};
  std::snprintf(to.data(), to.size(), "%s/%s", directory, name);
  std::snprintf(from.data(), from.size(), "%s/.%s.%d", directory, name, static_cast<int>(getpid()));
  const int file = open(from.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    return false;
  const auto written = write_all(file, words);
  if (close(file) != 0 || !written || rename(from.data(), to.data()) != 0) {
    unlink(from.data());
    return false;
  }
  return true;
}

void tell(int rank, std::string_view line) {
  std::array<char, 1024> memory{};
  text words(memory.data(), memory.size());
  words.add("troupe-trace: rank %d: ", rank);
  words.add(first_of(line, 900));
  words.add(std::string_view("\n"));
  write_all(STDERR_FILENO, words.written());
}

} // namespace troupe::trace
