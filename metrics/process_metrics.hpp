#pragma once

#include "metrics/exposition.hpp"
#include "runtime/base/log.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace troupe::metrics {

/// What each process tells of itself, whatever it is for: its version, its events, and its actors
/// that had to be started again.
class process_metrics {
 public:
  explicit process_metrics(std::string version);

  void observe(const log::event& e);
  void write(exposition& to) const;

 private:
  std::string version_;
  std::array<std::uint64_t, 5> by_level_{};
  std::uint64_t actor_restarts_ = 0;
};

} // namespace troupe::metrics
