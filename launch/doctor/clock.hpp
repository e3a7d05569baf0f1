#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"

#include <cstdint>
#include <string>

/// The wall clock of this machine. How far two machines are apart only the two together can tell.
namespace troupe::launch::doctor {

struct clock_facts {
  std::uint32_t nodes = 1;
  bool certificates = false;
  std::int64_t seconds = 0; ///< since 1970
  /// What the kernel says of it (adjtimex); `unknown` says why it says nothing.
  std::string unknown;
  bool synchronised = false;
  std::int64_t error_us = 0; ///< the most that it is wrong by
};
clock_facts look_at_clock(const launcher_options& o);
finding judge(const clock_facts& seen);

} // namespace troupe::launch::doctor
