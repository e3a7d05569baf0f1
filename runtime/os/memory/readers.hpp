#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <functional>
#include <utility>

namespace troupe::os {

/// Somebody who reads shared memory as a file, having opened its descriptor's name in /proc. The
/// kernel counts what was opened there to be read: until it is closed by all who inherited it and
/// no process maps any of it, whichever parts, and whether a child of his forked or he has died.
/// Who maps a descriptor that was handed to him has opened nothing, and is not counted.
class memory_reader {
 public:
  /// The descriptor stays the caller's. Waits while somebody else is in `while_nobody_reads`.
  /// `refused` where it cannot be opened.
  static result<memory_reader> open(int descriptor);

 private:
  explicit memory_reader(unique_fd opened) : opened_(std::move(opened)) {}
  unique_fd opened_;
};

/// Does it if nobody reads that memory, and nobody can open it meanwhile: `memory_reader`s wait
/// that come. False, and nothing done: somebody reads it or may write it, or it cannot be known.
/// That is so before Linux 5.3, without /proc, where leases of files are switched off, and for a
/// process that is neither of the user who made the memory nor privileged. Never waits.
bool while_nobody_reads(int descriptor, const std::function<void()>& what);

} // namespace troupe::os
