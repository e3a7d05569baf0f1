#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What the command line says about workers' output. The words are torchrun's; here is what they
/// mean, not how it is done.
namespace troupe::launch {

/// Which of a worker's two streams something applies to.
struct std_streams {
  bool out = false;
  bool err = false;

  friend bool operator==(std_streams a, std_streams b) { return a.out == b.out && a.err == b.err; }
  friend bool operator!=(std_streams a, std_streams b) { return !(a == b); }
  friend std_streams operator|(std_streams a, std_streams b) {
    return {a.out || b.out, a.err || b.err};
  }
};

/// One choice for every local rank, or one for each rank that is named and none for the others.
/// Ranks that do not exist may be named; nothing comes of it.
struct stream_choice {
  std_streams everyone;
  /// Unless empty, `everyone` says nothing.
  std::map<std::uint32_t, std_streams> by_rank;

  std_streams of(std::uint32_t local_rank) const;
  /// Whether any rank has a stream in it.
  bool any() const;
};

struct stream_options {
  /// `--log-dir`: below it each run makes a directory of its own. Empty: a fresh temporary one;
  /// "/dev/null": no files at all.
  std::string log_dir;
  /// `--redirects`: these streams go to a file instead of the console.
  stream_choice redirects;
  /// `--tee`: these go to a file and, line by line with a prefix, to the console.
  stream_choice tee;
  /// `--local-ranks-filter`: only these local ranks are seen on the console; files are not
  /// affected. Empty set: no rank is seen (only impossible ranks were named). Nothing: every rank
  /// is.
  std::optional<std::set<std::uint32_t>> shown;
  /// `--log-line-prefix-template`, else TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE: the prefix of tee'd
  /// lines, with ${role_name} ${local_rank} ${rank} ${hostname}, and ${node} and ${time}. Empty:
  /// torchrun's
  /// "[<role><local rank>]:".
  std::string prefix_template;
  /// `--duplicate-stdout-filters`: tee'd lines that contain any of these words also go to
  /// <attempt>/filtered_stdout.log; the empty word is in every line, no words means no such file.
  std::vector<std::string> duplicate_stdout;
  /// The same for stderr and filtered_stderr.log.
  std::vector<std::string> duplicate_stderr;
};

/// "0" … "3", or "rank:choice,…". torchrun allows one digit for the rank; we allow any rank a node
/// can have. `option` is named in the error.
result<stream_choice> parse_stream_choice(const std::string& option, const std::string& text);

/// "0,2,5"; nothing for an empty text. Negative numbers name no rank.
result<std::optional<std::set<std::uint32_t>>> parse_rank_filter(const std::string& text);

/// "apple,orange"; a double comma is a comma within a word.
std::vector<std::string> parse_words(const std::string& text);

} // namespace troupe::launch
