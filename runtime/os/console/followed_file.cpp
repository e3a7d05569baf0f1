#include "runtime/os/console/followed_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

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

std::uint64_t size_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

} // namespace

result<std::shared_ptr<followed_file>> followed_file::open(id number,
                                                           const ports::relayed_file& file) {
  auto opened = open_file(file.path, O_RDONLY);
  if (!opened)
    return tl::make_unexpected(opened.error());
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

bool followed_file::advance(std::string& block, std::string& shown, std::string& kept) {
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
