#pragma once

#include "runtime/base/result.hpp"
#include "runtime/sup/testing/simulated_engine.hpp"
#include "tests/sim/world.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sup {
class root;
class tree;
} // namespace troupe::sup

namespace troupe::sim {

struct host_options {
  /// How much faster than true time its clock runs, in millionths.
  std::int64_t drift_ppm = 0;
  /// How often its actors pause between two messages, so that the world may interfere there.
  double hesitation = 0;
  /// First come, first served; otherwise the seed picks whose turn it is.
  bool in_order = false;
};

/// One simulated operating-system process, a launcher or a master: an engine with a clock of its
/// own, and the tree on it. It runs only inside `call`, which is how the world reaches it.
class host : public std::enable_shared_from_this<host> {
 public:
  host(world& of, std::string name, std::uint64_t boot, host_options options);
  ~host();

  const std::string& name() const { return name_; }
  std::uint64_t boot() const { return boot_; }
  bool alive() const { return engine_ != nullptr; }
  bool paused() const { return paused_; }

  /// Its own clock, which all its timers follow.
  instant now() const;

  /// Starts its tree. `on_end` hears, in no host's context, that the tree has ended by itself or
  /// because it was asked to.
  void run_tree(const sup::tree& t, std::function<void(const std::optional<error>&)> on_end);
  void stop_tree();

  /// Lets `what` happen in this process, and then its actors act on it; later if it is paused,
  /// never if it has ended.
  void call(std::function<void()> what);
  void call_in(duration delay, std::function<void()> what);

  /// SIGSTOP and SIGCONT: it does nothing, while its clock goes on.
  void pause();
  void resume();

  /// The end, without a word to anybody inside. Not from inside `call`.
  void end(ending_kind how);

 private:
  instant local(instant true_time) const;
  instant true_time(instant local_time) const;
  void run_actors();
  void plan_wake();
  log::sink sink();

  world& world_;
  const std::string name_;
  const std::uint64_t boot_;
  const host_options options_;
  const instant born_;
  std::unique_ptr<sup::simulated_engine> engine_;
  std::unique_ptr<sup::root> root_;
  bool paused_ = false;
  bool running_ = false;
  bool continues_ = false; ///< actors that hesitated go on soon
  std::optional<instant> wake_planned_;
  std::vector<std::function<void()>> held_back_;
};

using host_ptr = std::shared_ptr<host>;

} // namespace troupe::sim
