#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/os/console/lines_core.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/ports/console.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::os {

/// Of what a progress bar writes over itself, one state so often.
inline constexpr auto bar_shown_every = std::chrono::seconds(1);
/// Of what needs no whole lines.
inline constexpr std::size_t passed_at_once = 16u << 10;

/// A growing file, read line by line. Nothing is kept in memory between two calls: what is not
/// finished is read again.
class followed_file {
 public:
  using id = ports::console_relay::id;

  static result<std::shared_ptr<followed_file>> open(id number, const ports::relayed_file& file);

  /// How much memory `advance` has use for.
  std::size_t block_size() const {
    return passes_through_ ? passed_at_once : limits::console_line_max;
  }
  /// Reads what is next. Answers whether it is worth calling again before the file has grown.
  /// `block` is memory to use, at least block_size() long.
  bool advance(std::string& block, std::string& shown, std::string& kept);

  /// What advance() gave was shown.
  void commit(const std::string& kept);

  /// Ends the line of which pieces were passed: its rest is a line of its own.
  void end_line(std::string& shown, std::string& kept) { lines_.end({}, shown, kept); }

  /// What is in the file now is all that will be shown.
  void end_here();
  /// Has a last byte, and it was given out; or none more will be taken.
  bool ended() const { return end_.has_value(); }
  bool within_line() const { return lines_.within_line(); }

  /// From any thread.
  ports::unshown_output unshown() const;

  id number() const { return number_; }
  const std::string& path() const { return path_; }
  int watch() const { return watch_; }
  void watched_as(int watch) { watch_ = watch; }

  bool ready = false; ///< it is in the queue of those that may have something to show

 private:
  followed_file(id number, const ports::relayed_file& file, unique_fd opened, unique_fd filtered)
      : number_(number), path_(file.path), fd_(std::move(opened)), filtered_(std::move(filtered)),
        passes_through_(file.passes_through), lines_(file.prefix, file.needles, bar_shown_every),
        progress_(file.progress), offset_(progress_ ? progress_->load() : 0), next_(offset_) {}

  bool pass_through(std::string& block, std::string& shown);
  void give_back();
  void tell_time();
  std::size_t read(std::string& block, std::size_t into, std::uint64_t from) const;

  id number_;
  std::string path_;
  unique_fd fd_;
  unique_fd filtered_;
  int watch_ = -1;
  bool passes_through_;
  std::uint64_t given_back_ = 0; ///< what is before takes no room on the disk any more
  lines_core lines_;
  std::shared_ptr<std::atomic<std::uint64_t>> progress_; ///< offset_, for a successor
  std::atomic<std::uint64_t> offset_;                    ///< what is before was shown
  std::uint64_t next_;                                   ///< what is before was given out
  std::size_t searched_ = 0; ///< so many bytes from next_ on hold no end of a line
  std::optional<std::uint64_t> end_;
};

} // namespace troupe::os
