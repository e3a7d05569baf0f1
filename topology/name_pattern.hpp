#pragma once

#include "runtime/base/result.hpp"

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

/// Patterns of names, as HyperNodes have them (`regexMatch`).
///
/// They come from a file, and the usual matchers go back: "(a*)*b" keeps them busy for as long as
/// one likes, or overflows their stack. This one looks at each character of a name once, with all
/// places of the pattern where it may be by then.
namespace troupe::topology {

class name_pattern {
 public:
  /// Go's syntax, as far as names need it: literals, `.`, classes, groups, `|`, `* + ? {m,n}`, `^`,
  /// `$`, and `\d \w \s \D \W \S`. Refuses what it does not know, and a pattern that becomes more
  /// than `limits::name_pattern_steps_max` steps.
  static result<name_pattern> of(std::string_view pattern);

  /// Whether a part of the name fits, as Go's `MatchString` has it. Adds to `looks` what it cost.
  bool fits(std::string_view name, std::uint64_t& looks) const;

 private:
  friend class name_pattern_reader;

  using characters = std::bitset<256>;
  struct step {
    enum class kind : std::uint8_t { one_of, either, begin, end, fits };
    kind is = kind::fits;
    /// `one_of`: of these sets; then the next step follows. `either`: these two follow.
    std::uint32_t first = 0, second = 0;
  };

  std::vector<step> steps_;
  std::vector<characters> sets_;
};

} // namespace troupe::topology
