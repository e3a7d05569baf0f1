#include "launch/keeper/life_record.hpp"

#include "launch/keeper/limits.hpp"
#include "launch/keeper/orphan_reaper.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// A launcher that looks around may lock a record between its making and its owner's lock.
constexpr int record_attempts = 3;

tl::unexpected<error> no_record(const std::string& where, const std::string& why) {
  return failure(errc::unavailable, fmt::format("{}: {}", where, why));
}

/// The open directory, if this user alone can write to it.
result<os::unique_fd> open_place(const std::string& place) {
  os::unique_fd opened(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0)
    return no_record(place, os::system_message(errno));
  if (found.st_uid != ::geteuid())
    return no_record(place, fmt::format("it belongs to user {}, not to this one", found.st_uid));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return no_record(place, "other users may write to it");
  return opened;
}

/// Locked by this process: its owner is dead, and no other launcher has it in hand. Of a record
/// that cannot be opened or locked nothing else is known.
os::unique_fd locked_record(int place, const char* name) {
  os::unique_fd file(::openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
      found.st_uid != ::geteuid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return {};
  // Another launcher removed it before this one had the lock.
  if (::fstat(file.get(), &found) != 0 || found.st_nlink == 0)
    return {};
  return file;
}

/// Empty if the line is not complete: the beginning of a mark is the mark of an outer launcher.
std::string mark_in(int file) {
  std::string text(limits::life_record_bytes_max, '\0');
  const auto size = ::pread(file, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto end = text.find('\n');
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

} // namespace

result<life_record> life_record::make(const std::string& place, const std::string& mark) {
  if (::mkdir(place.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return no_record(place, os::system_message(errno));
  if (const auto opened = open_place(place); !opened)
    return tl::make_unexpected(opened.error());
  const auto line = mark + "\n";
  for (int attempt = 0; attempt < record_attempts; ++attempt) {
    std::string path = place + "/XXXXXX";
    os::unique_fd file(::mkostemp(path.data(), O_CLOEXEC));
    if (!file)
      return no_record(place, os::system_message(errno));
    if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0 || ::access(path.c_str(), F_OK) != 0)
      continue;
    const auto written = ::write(file.get(), line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size()))
      return life_record(std::move(path), std::move(file));
    const auto why = written < 0 ? os::system_message(errno) : "no room";
    ::unlink(path.c_str());
    return no_record(path, why);
  }
  return no_record(place, "other processes remove what is made there");
}

void life_record::remove() const {
  ::unlink(path_.c_str());
}

std::string place_of_life_records() {
  std::error_code bad;
  const auto temporary = fs::temp_directory_path(bad);
  return (temporary / fmt::format("troupe-{}", ::geteuid())).string();
}

void bury_the_dead(const std::string& place) {
  auto opened = open_place(place);
  if (!opened)
    return; // none was made there, or none of this user's
  const int directory = opened->get();
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(opened->get()), ::closedir);
  if (!list)
    return;
  opened->release(); // it is the list's now
  std::size_t seen = 0;
  while (const auto* entry = ::readdir(list.get())) {
    if (++seen > limits::life_records_looked_at)
      return;
    const auto record = locked_record(directory, entry->d_name);
    if (!record)
      continue;
    if (const auto mark = mark_in(record.get()); !mark.empty())
      end_marked(mark);
    ::unlinkat(directory, entry->d_name, 0);
  }
}

} // namespace troupe::launch
