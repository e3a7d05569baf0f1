#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// Directories that the job writes to.
namespace troupe::launch::doctor {

struct place_facts {
  std::string subject; ///< "log directory"
  std::string path;
  std::string option;   ///< that names another one
  std::string why_not;  ///< why no file can be made there; empty: one was, and is gone again
  bool is_there = true; ///< else the directory above it that is there was looked at
  std::uint64_t available = 0;
  std::uint64_t wanted = 0; ///< with less than this it will be full
};
std::vector<place_facts> look_at_places(const doctor_options& o);
finding judge(const place_facts& seen);
findings judge(const std::vector<place_facts>& seen);

} // namespace troupe::launch::doctor
