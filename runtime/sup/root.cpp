#include "runtime/sup/root.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/sup/engine_config.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/supervisor.hpp"
#include "runtime/sup/tree_node.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace troupe::sup {

struct root::shared {
  shared(caf::actor_system& sys, const tree& t) : system(sys), spec(t) {}

  caf::actor_system& system;
  const tree spec;
  std::mutex mutex;
  std::condition_variable ended;
  /// Emptied at the end: a handle would keep the dead root's memory.
  caf::actor top;
  std::optional<ending> how;

  caf::actor current() {
    const std::lock_guard lock(mutex);
    return top;
  }

  void end(const caf::error& why) {
    if (spec.root().forget)
      spec.root().forget();
    caf::actor last;
    const std::lock_guard lock(mutex);
    std::swap(last, top);
    how = detail::is_normal_end(why) ? ending{} : ending{to_error(why)};
    ended.notify_all();
  }
};

void root::stop() const {
  if (const auto top = shared_->current())
    caf::anon_send_exit(top, caf::exit_reason::user_shutdown);
}

bool root::shutdown(duration deadline) const {
  stop();
  std::unique_lock lock(shared_->mutex);
  return shared_->ended.wait_for(lock, deadline, [this] { return shared_->how.has_value(); });
}

void root::kill() const {
  if (const auto top = shared_->current())
    caf::anon_send_exit(top, caf::exit_reason::kill);
}

std::optional<ending> root::ended() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->how;
}

void root::report(std::function<void(result<node_report>)> take) const {
  const duration within = limits::describe_within * (detail::height(shared_->spec.root()) + 1);
  // An actor that lives for one question.
  shared_->system.spawn(
      [top = shared_->current(), within, take = std::move(take)](caf::event_based_actor* self) {
        self->request(top, caf::duration{within}, dump{})
            .then([take](const node_report& r) { take(r); },
                  [take](const caf::error& e) { take(tl::make_unexpected(to_error(e))); });
      });
}

root spawn_root(caf::actor_system& system, const tree& t, log::sink sink,
                std::function<void(const ending&)> on_end) {
  const auto valid = validate(t);
  invariant(valid.has_value(), valid ? std::string() : valid.error().what);
  auto shared = std::make_shared<root::shared>(system, t);
  const context ctx(system, t.id(), std::move(sink), 0);
  const caf::actor top = detail::spawn_supervisor(t, ctx, [] {});
  {
    const std::lock_guard lock(shared->mutex);
    shared->top = top;
  }
  if (t.root().bind)
    t.root().bind(top);
  const auto* engine = dynamic_cast<const detail::engine_config*>(&system.config());
  if (engine)
    engine->enter(top);
  // Attached last: if the tree has ended by now, this is called at once.
  top->attach_functor(
      [shared, engine, id = top.id(), on_end = std::move(on_end)](const caf::error& why) {
        shared->end(why);
        if (engine)
          engine->leave(id);
        if (on_end)
          on_end(*shared->how);
      });
  return root(shared);
}

} // namespace troupe::sup
