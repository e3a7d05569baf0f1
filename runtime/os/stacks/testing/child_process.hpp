#pragma once

#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <functional>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::os {

/// A process that a test looks into; ended with it.
class child_process {
 public:
  /// `body` runs in it and is told where to write a byte when it is as the test wants it.
  explicit child_process(const std::function<void(int ready)>& body) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    from_ = unique_fd(ends[0]);
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  /// Waits for as many bytes; false if it ended before.
  bool await(int bytes = 1) const {
    for (char byte = 0; bytes > 0; --bytes)
      if (::read(from_.get(), &byte, 1) != 1)
        return false;
    return true;
  }
  pid_t pid() const { return pid_; }
  /// It was waited for elsewhere.
  void forget() { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  unique_fd from_;
};

inline void tell(int ready) {
  (void)!::write(ready, "x", 1);
}

} // namespace troupe::os
