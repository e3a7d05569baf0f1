#pragma once

#include "runtime/os/journal/journal_opening.hpp"
#include "runtime/os/journal/journal_tail.hpp"
#include "runtime/os/journal/sqlite.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// What an acknowledged record survives.
enum class durability {
  process,  ///< The end of this process, however sudden: its bytes are with the kernel.
  power_cut ///< A power cut too, once it is synced: limits::journal_sync_within later, and what
            ///< the disk takes for it.
};

/// A journal's SQLite file: one row for each record, and one that says whose it is. Used by one
/// thread at a time.
///
/// Each record's checksum covers the one before it, so that a record that is changed, taken out or
/// put in is an error that names it. A journal with a hole is not a shorter history but a wrong
/// one.
class journal_file {
 public:
  /// Opens or creates, and decides whether this run may have it (journal_opening.hpp). `refused` if
  /// it is another job's, another master's or of a later version, or cannot be opened; `invalid` if
  /// it is no journal or damaged; `unavailable` if the disk has no room for a new one. A file that
  /// is refused is not changed.
  static result<journal_file> open(const std::string& path, const journal_owner& mine,
                                   durability keeps);

  term opened_as() const { return as_; }
  bool taken_up() const { return taken_up_; }
  std::uint64_t last() const { return last_; }
  const std::vector<log::event>& notices() const { return notices_; }

  /// All of them or none.
  result<void> append(const std::vector<messages::any_msg>& records);
  result<std::vector<messages::any_msg>> read();
  /// `records` take the place of all there are. The next one is counted as before.
  result<void> replace(const std::vector<messages::any_msg>& records);

 private:
  journal_file(std::string path, database db) : path_(std::move(path)), db_(std::move(db)) {}

  struct about {
    int version = 0; ///< 0: the file is new
    std::optional<std::string> job;
    std::optional<std::uint64_t> run;
    std::uint64_t term = 0;
    std::uint64_t identity = 0;
    std::uint64_t first = 1;
  };

  result<about> look(durability keeps);
  result<void> make(const journal_owner& mine);
  result<void> upgrade(const journal_owner& mine);
  result<void> begin(const journal_owner& mine, bool anew);
  result<std::vector<messages::any_msg>> read_version_1();
  result<void> insert(const std::vector<messages::any_msg>& records, std::uint64_t first);
  result<void> save_life();
  result<void> in_one(const std::function<result<void>()>& changes);
  error damaged(std::uint64_t number, const std::string& why) const;

  std::string path_;
  database db_;
  about about_;
  term as_;
  bool taken_up_ = false;
  std::uint64_t last_ = 0;    ///< number of the last record
  std::int64_t checksum_ = 0; ///< of the last record
  bool life_saved_ = false;   ///< term and run are in the file
  std::vector<log::event> notices_;
  std::optional<journal_tail> tail_;
};

} // namespace troupe::os
