#pragma once

#include "runtime/base/log.hpp"
#include "runtime/sup/protocol.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sup {

/// Where in which tree an actor lives. Given to its starter; the actor keeps a copy (a pointer
/// copy) for its log lines.
class context {
 public:
  context(caf::actor_system& system, std::string path, log::sink sink, unsigned incarnation);

  caf::actor_system& system() const { return place_->system; }
  /// "master/rendezvous"
  const std::string& path() const { return place_->path; }
  const log::sink& log() const { return place_->sink; }
  /// 0 at the first start, then one more with each restart.
  unsigned incarnation() const { return place_->incarnation; }

  /// Spawns an actor from its behaviour function `behave(self, args…)` and narrows its handle to
  /// `H`. For a starter: the supervisor adopts what the starter returns.
  template<class H, class Behave, class... Args>
  H spawn(Behave behave, Args&&... args) const {
    return H{system().spawn(std::move(behave), std::forward<Args>(args)...)};
  }

  /// The same for an actor written as a class: `Impl(caf::actor_config&, args…)`.
  template<class H, class Impl, class... Args>
  H spawn_class(Args&&... args) const {
    return H{system().spawn<Impl>(std::forward<Args>(args)...)};
  }

  /// For the supervisor: what to do when the actor begins, before it does anything itself.
  void when_it_begins(std::function<void(const caf::strong_actor_ptr&)> what) const {
    place_->begins = std::move(what);
  }
  /// The actor begins; called by `harden`, once. Forgets what to do: the actor keeps its context,
  /// and an address it is at must not be kept by it.
  void begin(const caf::strong_actor_ptr& self) const {
    if (const auto what = std::exchange(place_->begins, nullptr))
      what(self);
  }

  /// For the supervisor: where to tell that the actor's work has failed before the actor ends.
  void when_it_fails(std::function<void(std::string)> what) const {
    place_->fails = std::move(what);
  }
  /// This actor's work has failed, and the actor lives on only to clean up. A supervisor whose
  /// children share one fate acts at once as if the child had ended: it orders all of them to stop,
  /// this one as well. Means nothing the second time, and under any other strategy.
  void fail_early(std::string why) const {
    if (const auto what = std::exchange(place_->fails, nullptr))
      what(std::move(why));
  }

  /// Messages this actor's protocol did not expect, so far.
  std::uint64_t unexpected() const { return place_->unexpected.load(std::memory_order_relaxed); }
  void count_unexpected() const { place_->unexpected.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct place {
    place(caf::actor_system& sys, std::string where, log::sink to, unsigned which)
        : system(sys), path(std::move(where)), sink(std::move(to)), incarnation(which) {}
    caf::actor_system& system;
    std::string path;
    log::sink sink;
    unsigned incarnation;
    std::function<void(const caf::strong_actor_ptr&)> begins;
    std::function<void(std::string)> fails;
    std::atomic<std::uint64_t> unexpected{0};
  };
  std::shared_ptr<place> place_;
};

/// Reports something that happened to this actor: to the sink, under its path.
void tell_log(const context& ctx, log::level severity, std::string name, std::string text,
              std::vector<std::pair<std::string, log::value>> fields = {});

} // namespace troupe::sup
