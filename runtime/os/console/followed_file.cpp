#include "runtime/os/console/followed_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace troupe::os {

namespace {

constexpr mode_t permissions = 0666;

result<unique_fd> open_file(const std::string& path, int flags) {
  unique_fd opened(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOCTTY, permissions));
  if (!opened)
    return failure(errc::refused,
                   fmt::format("log file '{}': {}", path, std::generic_category().message(errno)));
  return opened;
}

/// What was shown stays so long at most, so that the end can be read; more is given back at once.
constexpr std::uint64_t kept_of_shown = 64u << 10, given_back_at_once = 1u << 20;
/// A process must not fail to write its errors since the disk is full.
constexpr std::uint64_t room_wanted = 64u << 20;

bool punch(int fd, std::uint64_t from, std::uint64_t bytes) {
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                     static_cast<off_t>(bytes)) == 0;
}

/// Whether the file's end can be kept without the rest.
bool has_room_for_an_end(int fd) {
  struct statvfs disk {};
  return ::fstatvfs(fd, &disk) == 0 && disk.f_bavail * disk.f_frsize >= room_wanted &&
         punch(fd, 0, given_back_at_once);
}

std::uint64_t size_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

} // namespace

result<std::shared_ptr<followed_file>> followed_file::open(id number,
                                                           const ports::relayed_file& file) {
  auto opened = open_file(file.path, file.passes_through ? O_RDWR : O_RDONLY);
  if (!opened)
    return tl::make_unexpected(opened.error());
  // A process that has begun to write there goes on to.
  if (file.passes_through && size_of(opened->get()) == 0 && !has_room_for_an_end(opened->get()))
    return failure(errc::refused, fmt::format("'{}' cannot keep the end of a stream: its disk is "
                                              "full, or gives no room back",
                                              file.path));
  unique_fd filtered;
  if (!file.needles.empty()) {
    auto sink = open_file(file.filtered_path, O_WRONLY | O_APPEND);
    if (!sink)
      return tl::make_unexpected(sink.error());
    filtered = std::move(*sink);
  }
  return std::shared_ptr<followed_file>(
      new followed_file(number, file, std::move(*opened), std::move(filtered)));
}

void followed_file::tell_time() {
  using namespace std::chrono;
  std::string time_of_day;
  if (lines_.tells_time()) {
    const auto wall = system_clock::now();
    const auto ms = duration_cast<milliseconds>(wall.time_since_epoch()).count() % 1000;
    time_of_day =
        fmt::format("{:%H:%M:%S}.{:03}", fmt::localtime(system_clock::to_time_t(wall)), ms);
  }
  lines_.set_time(steady_clock::now(), time_of_day);
}

bool followed_file::pass_through(std::string& block, std::string& shown) {
  const auto left = end_ ? *end_ - std::min(*end_, next_) : block.size();
  const auto got = read(block, std::min<std::uint64_t>(block.size(), left), next_);
  shown.append(block, 0, got);
  next_ += got;
  return got > 0;
}

void followed_file::give_back() {
  if (!passes_through_ || next_ < given_back_ + kept_of_shown + given_back_at_once)
    return;
  const auto until = next_ - kept_of_shown;
  (void)punch(fd_.get(), given_back_, until - given_back_);
  given_back_ = until;
}

bool followed_file::advance(std::string& block, std::string& shown, std::string& kept) {
  if (passes_through_)
    return pass_through(block, shown);
  const auto most = static_cast<std::size_t>(
      end_ ? std::min<std::uint64_t>(block.size(), *end_ - std::min(*end_, next_)) : block.size());
  if (searched_ > 0 && searched_ < most) {
    // An unfinished line has grown; only what is new can end it.
    const auto grown = read(block, most - searched_, next_ + searched_);
    if (grown == 0)
      return false;
    const bool ends = lines_core::has_end({block.data(), grown});
    if (!ends && searched_ + grown < most) {
      searched_ += grown;
      return true;
    }
  }
  const auto size = read(block, most, next_);
  const std::string_view text(block.data(), size);
  const auto enough = 2 * block.size();
  tell_time();
  auto taken = lines_.take(text, enough, shown, kept);
  if (taken == 0 && size == block.size()) {
    lines_.pass_piece(text, shown, kept);
    taken = size;
  } else if (end_ && shown.size() < enough && next_ + size == *end_) {
    lines_.end(text.substr(taken), shown, kept);
    taken = size;
  }
  next_ += taken;
  searched_ = taken > 0 ? 0 : size;
  return taken > 0;
}

std::size_t followed_file::read(std::string& block, std::size_t size, std::uint64_t from) const {
  const auto got = ::pread(fd_.get(), block.data(), size, static_cast<off_t>(from));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

void followed_file::commit(const std::string& kept) {
  offset_ = next_;
  if (progress_)
    *progress_ = next_;
  give_back();
  for (std::size_t at = 0; at < kept.size();) {
    const auto written = ::write(filtered_.get(), kept.data() + at, kept.size() - at);
    if (written <= 0)
      return; // the disk is full: the whole is in the log, if anywhere
    at += static_cast<std::size_t>(written);
  }
}

void followed_file::end_here() {
  if (!end_)
    end_ = std::max(size_of(fd_.get()), next_);
}

ports::unshown_output followed_file::unshown() const {
  const auto shown = offset_.load();
  return {path_, std::max(size_of(fd_.get()), shown) - shown};
}

} // namespace troupe::os
