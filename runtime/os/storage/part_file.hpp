#pragma once

#include "runtime/os/storage/file_ops.hpp"

#include <cstdint>
#include <string>

namespace troupe::os {

/// A file that is being written, under a name that no reader looks at, and locked: so that what a
/// dead process has left can be told from what a living one writes, on other machines too. Gone
/// with this object unless it was published.
class part_file {
 public:
  explicit part_file(file_ops& files) : files_(files) {}
  part_file(const part_file&) = delete;
  part_file& operator=(const part_file&) = delete;
  ~part_file();

  /// `directory` ends with a slash. 0 or -errno. `number` makes the name; it is counted up past
  /// those that are taken.
  int create(const std::string& directory, std::uint64_t& number, int flags);
  int descriptor() const { return file_; }
  /// The whole file takes its place in the same directory.
  int publish(const std::string& path);

 private:
  void discard();

  file_ops& files_;
  std::string path_;
  int file_ = -1;
};

/// Removes what dead processes have left in a directory, as far as that can be told and done.
void sweep_part_files(file_ops& files, const std::string& directory);

bool is_part_file(const std::string& name);

} // namespace troupe::os
