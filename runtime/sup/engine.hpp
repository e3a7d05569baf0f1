#pragma once

#include <caf/fwd.hpp>

#include <memory>

namespace troupe::sup {

/// Runs actors on threads of its own. Idle threads sleep; no file is read. A process may have
/// several, each with roots in it.
class engine {
 public:
  explicit engine(unsigned threads);
  /// Call root::shutdown first. A tree that still runs is killed, and waited for a moment only.
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  caf::actor_system& system();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace troupe::sup
