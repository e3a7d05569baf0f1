#pragma once

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system_config.hpp>

#include <map>
#include <mutex>
#include <vector>

namespace troupe::sup::detail {

/// The configuration of our actor systems. CAF is never given a command line or a file to read. It
/// also knows the trees that run in its system: CAF cannot enumerate actors, and an engine that
/// goes has to end them.
class engine_config : public caf::actor_system_config {
 public:
  engine_config() = default;

  void enter(const caf::actor& root) const {
    const std::lock_guard lock(mutex_);
    roots_.emplace(root.id(), caf::actor_cast<caf::weak_actor_ptr>(root));
  }

  void leave(caf::actor_id root) const {
    const std::lock_guard lock(mutex_);
    roots_.erase(root);
  }

  std::vector<caf::actor> roots() const {
    const std::lock_guard lock(mutex_);
    std::vector<caf::actor> living;
    for (const auto& [id, weak] : roots_) {
      if (auto strong = caf::actor_cast<caf::actor>(weak))
        living.push_back(std::move(strong));
    }
    return living;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<caf::actor_id, caf::weak_actor_ptr> roots_;
};

} // namespace troupe::sup::detail
