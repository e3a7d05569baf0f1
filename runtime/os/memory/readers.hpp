#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <optional>
#include <utility>

namespace troupe::os {

/// A reader of shared memory as a file, opened by its descriptor's name in /proc. The kernel counts
/// such an open file as a reader until every process that inherited it has closed it and no process
/// maps any part of it. Forked children count, and a process that dies stops counting. A process
/// that maps a descriptor which it was handed has opened nothing, and is not counted.
class memory_reader {
 public:
  /// The descriptor stays the caller's. Waits while there is a `sole_reader`.
  /// `refused` where it cannot be opened.
  static result<memory_reader> open(int descriptor);

 private:
  explicit memory_reader(unique_fd opened) : opened_(std::move(opened)) {}
  unique_fd opened_;
};

/// The only one that has it open, be it to read or to write. Other opens wait.
class sole_reader {
 public:
  /// Never waits. Nothing: another process reads it, or it cannot be known. That is so before Linux
  /// 5.3, without /proc, where leases of files are switched off, and for a process that is neither
  /// of the user who made the memory nor privileged.
  static std::optional<sole_reader> open(int descriptor);
  sole_reader(sole_reader&& other) noexcept = default;
  /// Opens that wait go on. To be soon: the kernel lets them after some time (45 s) anyway.
  ~sole_reader();

 private:
  explicit sole_reader(unique_fd leased) : leased_(std::move(leased)) {}
  unique_fd leased_;
};

} // namespace troupe::os
