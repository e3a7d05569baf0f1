#pragma once

#include "runtime/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::os {

/// Memory of this process that is not to change yet: a write to it waits, and its address is told
/// here. Linux' userfaultfd(2) in its write-protecting form.
class write_watch {
 public:
  /// `refused` says what is missing: the right to catch the kernel's own writes as well (as those
  /// of read(2) into a tensor; CAP_SYS_PTRACE, /dev/userfaultfd or vm.unprivileged_userfaultfd), or
  /// a kernel from 5.14 on.
  static result<write_watch> open();

  write_watch(write_watch&& other) noexcept;
  write_watch& operator=(write_watch&& other) noexcept;
  ~write_watch();

  /// From now on writes to these whole pages wait, until `release`. `refused` for memory that
  /// cannot be watched, as a mapped file; nothing has changed then. The first time a piece of
  /// memory is protected takes longer.
  result<void> protect(char* begin, std::uint64_t bytes);
  /// May be called for part of what was protected, and for what is not. Writes that wait there go
  /// on.
  void release(char* begin, std::uint64_t bytes) const;

  /// Calls `told` with the address of each write that waits, until `stop` is called. One thread.
  void run(const std::function<void(char* address)>& told) const;
  void stop() const;

 private:
  write_watch(int faults, int stop, bool unpopulated)
      : faults_(faults), stop_(stop), unpopulated_(unpopulated) {}
  result<void> enroll(char* begin, std::uint64_t bytes);

  int faults_ = -1, stop_ = -1;
  bool unpopulated_ = false; ///< pages that were never touched can be protected
};

} // namespace troupe::os
