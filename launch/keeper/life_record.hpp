#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <string>

namespace troupe::launch {

/// The mark of a launcher that lives: a small file, locked by the launcher's processes, in a
/// directory that only this user can write. The kernel drops the lock with the last of those
/// processes, however they end. A record without a lock therefore belongs to a launcher that was
/// killed, perhaps together with its orphan reaper, and the mark in it is what the next launcher
/// needs to find the daemons.
class life_record {
 public:
  /// `unavailable`, with the reason, where none can be made: then the launcher runs without.
  /// `mark` is as in keeper_options.
  static result<life_record> make(const std::string& place, const std::string& mark);

  /// All that carries the mark has ended. The lock stays until the launcher's processes have ended.
  void remove() const;

 private:
  life_record(std::string path, os::unique_fd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  os::unique_fd file_;
};

/// The directory of this user's records.
std::string place_of_life_records();

/// Ends the processes that carry the mark of a launcher whose record has lost its lock, and removes
/// the record. Records of other users are not touched. Takes limits::burial_within for each such
/// record at most.
void bury_the_dead(const std::string& place);

} // namespace troupe::launch
