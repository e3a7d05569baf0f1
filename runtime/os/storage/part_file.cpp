#include "runtime/os/storage/part_file.hpp"

#include "runtime/ports/storage.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace troupe::os {

namespace {

constexpr int names_tried = 64;

/// Without locks in the file system no process can take our lock, and none sweeps.
bool has_no_locks(int answer) {
  return answer == -ENOSYS || answer == -EOPNOTSUPP || answer == -ENOLCK || answer == -EINVAL;
}

} // namespace

part_file::~part_file() {
  discard();
}

void part_file::discard() {
  if (file_ < 0)
    return;
  files_.unlink(path_);
  files_.close(std::exchange(file_, -1));
}

int part_file::create(const std::string& directory, std::uint64_t& number, int flags) {
  for (int tries = 0; tries < names_tried; ++tries) {
    path_ = fmt::format("{}{}{:016x}", directory, ports::part_prefix, number++);
    const int file = files_.open(path_, flags | O_CREAT | O_EXCL);
    if (file == -EEXIST)
      continue;
    if (file < 0)
      return file;
    file_ = file;
    const int locked = files_.flock(file_);
    // Between the two calls a sweep may have taken it for a dead one's, and removed it.
    if ((locked == 0 || has_no_locks(locked)) && files_.links(file_) > 0)
      return 0;
    discard();
  }
  return -EBUSY;
}

int part_file::publish(const std::string& path) {
  if (const int answer = files_.rename(path_, path); answer < 0)
    return answer;
  files_.close(std::exchange(file_, -1));
  return 0;
}

void sweep_part_files(file_ops& files, const std::string& directory) {
  std::vector<directory_entry> found;
  if (files.entries(directory, found) < 0)
    return;
  for (const auto& entry : found) {
    if (!is_part_file(entry.name))
      continue;
    // Only regular files are made by that name, and to open a device may take for ever.
    if (entry.kind != directory_entry::kind_of::file)
      continue;
    const auto path = directory + "/" + entry.name;
    const int file = files.open(path, O_RDWR | O_NONBLOCK);
    if (file < 0)
      continue;
    if (files.flock(file) == 0)
      files.unlink(path);
    files.close(file);
  }
}

bool is_part_file(const std::string& name) {
  return name.compare(0, ports::part_prefix.size(), ports::part_prefix) == 0;
}

} // namespace troupe::os
