#pragma once

#include "runtime/ports/process.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

/// What a test of real processes looks at, and where it keeps their files.
namespace troupe::testing {

/// A directory of this test's own, removed with it.
class scratch {
 public:
  scratch();
  ~scratch() { std::filesystem::remove_all(path_); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string content(const std::string& file);

/// "S", "Z" …; empty when there is no such process.
std::string state_of(pid_t pid);

/// Children and theirs, ended ones included.
std::vector<pid_t> descendants_of(pid_t pid);

/// How many of these have not ended.
std::size_t alive_among(const std::vector<pid_t>& pids);

ports::process_spec shell(const std::string& script);

} // namespace troupe::testing
