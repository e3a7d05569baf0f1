#pragma once

#include "runtime/os/process/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::os {

/// A few bytes beside a journal that say how many records it has. A flipped bit in SQLite's
/// write-ahead log ends the log there: SQLite takes what follows for torn and drops it without a
/// word. Only a count that is kept elsewhere tells that something is missing.
///
/// The count can be too low (it is written after the record), never too high. It takes no room on a
/// full disk once the file is there.
class journal_tail {
 public:
  struct count {
    std::uint64_t journal = 0; ///< which one, by the number it was given when it was made
    std::uint64_t records = 0; ///< the number of the last one
  };

  static std::string path_of(const std::string& journal) { return journal + "-count"; }

  /// Nothing if there is none, or it is damaged.
  static std::optional<count> read(const std::string& journal);

  explicit journal_tail(const std::string& journal);
  void write(const count& c) const;

 private:
  unique_fd file_;
};

} // namespace troupe::os
