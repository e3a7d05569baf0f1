#pragma once

#include "ckpt/catalog/place_writer.hpp"
#include "tests/sim/checkpoints.hpp"
#include "tests/sim/fiber.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace troupe::sim {

/// What a thread at one place does: runtime/os/checkpoint/place_thread on a fiber.
class sim_place_thread {
 public:
  using work = std::function<void(ckpt::place_writer&)>;

  sim_place_thread(checkpoints& all, const host_ptr& launcher);
  void ask(work what);
  void ask_later(work what);
  void end();

 private:
  void go_on();

  world& world_;
  sim_place& place_;
  const host_ptr launcher_;
  ckpt::place_writer writer_;
  struct asked {
    work what;
    std::shared_ptr<place_use> use;
  };
  std::deque<asked> now_, later_;
  std::shared_ptr<fiber> running_;
  bool ended_ = false;
};

/// The twin of runtime/os/checkpoint/snapshot_writer.
class sim_checkpoint_host final : public ckpt::checkpoint_host,
                                  public std::enable_shared_from_this<sim_checkpoint_host> {
 public:
  sim_checkpoint_host(checkpoints& of, host_ptr launcher);

  void watch(std::function<void(const ckpt::persist_request&)> on_request) override;
  void look(std::function<void()> done) override { done(); }
  void write(const ckpt::persist_request& snapshot,
             std::function<void(result<ports::receipt>)> done) override;
  void commit(const ckpt::commit_order& order,
              std::function<void(result<ckpt::completed>)> done) override;
  void retain(const ckpt::retain_order& order) override;
  void finalize(const ckpt::persist_request& snapshot, const result<void>& how) override;
  void request_newest() override {}

  void tell(const ckpt::persist_request& snapshot);
  /// Its process ends, with its threads.
  void end();

 private:
  result<ports::receipt> write_now(ckpt::place_writer& to, const ckpt::persist_request& snapshot);
  const std::string& node() const { return launcher_->name(); }

  checkpoints& all_;
  const host_ptr launcher_;
  sim_place_thread writes_, commits_;
  std::function<void(const ckpt::persist_request&)> on_request_;
};

} // namespace troupe::sim
