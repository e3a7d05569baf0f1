#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::testing {

/// A child process running tests/link/link_peer; killed and reaped with this.
class child {
 public:
  explicit child(const std::vector<std::string>& arguments);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  /// The next line of its standard output, without the end of the line.
  std::string line();

  void signal(int number) const;

  /// SIGSTOP, and wait until it has stopped.
  void stop() const;

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

} // namespace troupe::testing
