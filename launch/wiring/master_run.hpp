#pragma once

#include "actors/topology.hpp"
#include "runtime/base/result.hpp"
#include "runtime/sup/root.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace troupe::launch {

/// A running master tree, and what it came to.
class master_run {
 public:
  /// Of the engine it is to run on, which it shares with no other tree. Nothing in the tree blocks,
  /// and what costs time, TLS and the journal, has threads of its own: a second one here would only
  /// hand messages to and fro.
  static constexpr unsigned threads = 1;

  /// Starts the tree and waits until it listens; the error says why it cannot.
  static result<std::unique_ptr<master_run>> start(caf::actor_system& system,
                                                   const actors::master_world& world,
                                                   const actors::master_options& options,
                                                   const log::sink& sink);
  ~master_run();

  ports::endpoint where() const { return where_; }

  /// Ready when the job is over or the master has given up (then with the reason).
  std::shared_future<actors::recovery_core::verdict> verdict() const { return shared_->verdict; }

  /// Ready when, after the verdict, every node has left, is lost, or has had the time that its
  /// workers and its last saves may take; or when interrupt() was called again.
  std::shared_future<void> everyone_left() const { return shared_->left; }

  /// Waits for the verdict and then for everyone_left(), and ends the tree. What is queued on its
  /// links, the verdict above all, is still sent.
  actors::recovery_core::verdict farewell();

  /// A signal of the user. The first ends the job: every node is told, and `reason` with it. The
  /// second ends the wait for the nodes.
  void interrupt(const std::string& reason);

  /// After farewell(): what a node says of the job, if this master has ended for one that begins
  /// with it.
  std::optional<messages::job_words> options_taken() const { return shared_->options; }

  /// After farewell(): its verdict says why the master has given up, and nothing of training.
  bool is_broken() const { return shared_->is_broken; }

  /// This master goes and its job does not: no node hears of it, and the next master takes up the
  /// journal. farewell() returns.
  void give_way();

 private:
  struct shared {
    std::promise<actors::recovery_core::verdict> promise;
    std::shared_future<actors::recovery_core::verdict> verdict{promise.get_future()};
    std::promise<void> left_promise;
    std::shared_future<void> left{left_promise.get_future()};
    std::atomic<bool> known{false};
    std::atomic<bool> all_left{false};
    std::atomic<bool> interrupted{false};
    std::atomic<bool> gives_way{false};
    std::atomic<bool> is_broken{false};
    std::optional<messages::job_words> options; ///< written before `leave`, read after it
    void leave() {
      if (!all_left.exchange(true))
        left_promise.set_value();
    }
    void give_way() {
      gives_way = true;
      conclude({false, "the master goes"});
      leave();
    }
    void conclude(const actors::recovery_core::verdict& v) {
      if (!known.exchange(true))
        promise.set_value(v);
    }
    void give_up(const std::string& why) {
      if (!known)
        is_broken = true;
      conclude({false, "the master ended: " + why});
      leave();
    }
  };

  explicit master_run(actors::master_world world) : world_(std::move(world)) {}
  void shutdown();
  /// The next master on this journal begins a new run.
  void record_end();

  actors::master_world world_;

  std::shared_ptr<shared> shared_ = std::make_shared<shared>();
  actors::master_addresses at_;
  ports::endpoint where_;
  std::optional<sup::root> root_;
};

} // namespace troupe::launch
