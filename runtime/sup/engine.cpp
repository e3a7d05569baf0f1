#include "runtime/sup/engine.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/sup/engine_config.hpp"
#include "runtime/sup/scheduler.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <thread>

namespace troupe::sup {

namespace {

/// One actor's, before the others and the timers have their turn.
constexpr std::size_t messages_in_a_row = 64;

} // namespace

struct engine::parts {
  explicit parts(unsigned threads) : config(threads), system(config) {}

  struct settings : detail::engine_config {
    explicit settings(unsigned threads) {
      load<detail::scheduler>();
      set("scheduler.max-throughput", messages_in_a_row);
      set("scheduler.max-threads", static_cast<std::size_t>(threads));
    }
  };

  settings config;
  caf::actor_system system;
};

engine::engine(unsigned threads) {
  invariant(threads > 0, "an engine without threads");
  parts_ = std::make_unique<parts>(threads);
}

engine::~engine() {
  for (const auto& root : parts_->config.roots())
    caf::anon_send_exit(root, caf::exit_reason::kill);
  // CAF would wait for every actor, for ever if a handle somewhere keeps one. It offers no wait
  // with a limit and no notice, hence this loop; after an orderly shutdown it does not go round
  // once.
  const auto& living = parts_->system.registry();
  const auto patience = std::chrono::steady_clock::now() + limits::engine_patience;
  while (living.running() > 0 && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(1ms);
  parts_->system.await_actors_before_shutdown(false);
}

caf::actor_system& engine::system() {
  return parts_->system;
}

} // namespace troupe::sup
