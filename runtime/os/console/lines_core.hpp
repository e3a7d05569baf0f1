#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::os {

/// Turns the bytes of one stream into lines with a prefix. A line ends with "\n", "\r\n" or "\r"
/// (progress bars write the last), as Python reads text files; what comes out always ends with
/// "\n".
///
/// What ends with "\r" is a state of a progress bar, which the next one writes over. Of these one
/// is shown each `bar_every`: a file or a terminal with many ranks would hold nothing else. The
/// last state of a bar ends with "\n" and is shown.
///
/// Bytes are offered in blocks. What is not taken is the beginning of a line: it is offered again
/// with more behind it, and put to an end by pass_piece() or end().
class lines_core {
 public:
  /// Lines that contain any of `needles` are also kept apart. "${time}" in the prefix is the time
  /// of day at which a line is shown.
  lines_core(std::string prefix, std::vector<std::string> needles, duration bar_every = {});

  /// Whether its lines have a time in them, for `set_time`.
  bool tells_time() const { return time_at_ != std::string::npos; }
  /// Before what is shown at that moment.
  void set_time(instant now, std::string_view time_of_day);

  /// Appends the complete lines of `block` to `shown`, until that has `enough` bytes or more.
  /// Answers how much was taken.
  std::size_t take(std::string_view block, std::size_t enough, std::string& shown,
                   std::string& kept);

  /// Passes on the whole of `piece`, which has no end of line: the line is too long to wait for its
  /// end.
  void pass_piece(std::string_view piece, std::string& shown, std::string& kept);

  /// No more comes, or not for now: ends the line begun with `rest` and the pieces before it.
  void end(std::string_view rest, std::string& shown, std::string& kept);

  /// A piece was passed, and its line is not at its end.
  bool within_line() const { return within_line_; }

  /// Whether `bytes`, which come next, end a line somewhere.
  static bool has_end(std::string_view bytes);

 private:
  bool wanted(std::string_view line) const;
  /// Whether a state of a bar comes too soon after the last one that was shown.
  bool too_soon() const;
  void begin(std::string_view text, std::string& shown, std::string& kept);
  void line(std::string_view text, std::string& shown, std::string& kept);

  std::string pattern_; ///< of the prefix
  std::size_t time_at_; ///< where in it the time is
  std::string prefix_;  ///< of the lines of this moment
  duration bar_every_;
  instant now_{};
  std::optional<instant> bar_shown_at_;
  /// Looked for in text as it is, without a prefix, so that no prefix can match.
  std::vector<std::string> needles_;
  /// Its prefix is on the console already, and no other line may come between.
  bool within_line_ = false;
  bool keeping_ = false;  ///< the line whose pieces were passed is kept apart
  bool after_cr_ = false; ///< the last line ended with "\r"; a "\n" that comes next belongs to it
};

} // namespace troupe::os
