#pragma once

#include "actors/topology.hpp"
#include "runtime/sup/root.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <optional>

namespace troupe::launch {

/// A running node supervisor tree, and what this node's part in the job came to.
class node_run {
 public:
  static std::unique_ptr<node_run> start(caf::actor_system& system, const actors::node_world& world,
                                         const actors::node_options& options,
                                         const log::sink& sink);
  ~node_run();

  /// Ready when this node's processes are gone and it has nothing more to do.
  std::shared_future<actors::node_outcome> outcome() const { return shared_->outcome; }

  /// Whether the outcome is that the tree could not be started or kept up, for want of memory or by
  /// a bug of ours. Known with the outcome.
  bool gave_up() const { return shared_->gave_up; }

  /// Passes the user's signal on to the workers and leaves the job; from any thread.
  /// `ends_job`: the master that this launcher runs ends the job as well.
  void interrupt(int signal, bool ends_job);

  /// Passes it on to the workers, and nothing else; from any thread.
  void pass_on(int signal);

  void shutdown();

 private:
  struct shared {
    std::promise<actors::node_outcome> promise;
    std::shared_future<actors::node_outcome> outcome{promise.get_future()};
    std::atomic<bool> known{false}, gave_up{false};
    void conclude(const actors::node_outcome& o) {
      if (!known.exchange(true))
        promise.set_value(o);
    }
  };

  node_run() = default;

  std::shared_ptr<shared> shared_ = std::make_shared<shared>();
  actors::node_addresses at_;
  std::optional<sup::root> root_;
};

} // namespace troupe::launch
