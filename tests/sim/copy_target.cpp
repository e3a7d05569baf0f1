#include "tests/sim/copy_target.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <deque>
#include <iterator>
#include <utility>
#include <variant>

namespace troupe::sim {

copy_target::copy_target(world& of, host_ptr launcher, sim_piece_memory& memory)
    : world_(of), launcher_(std::move(launcher)), memory_(memory),
      core_(messages::author("replication_target"), limits::local_world_max) {}

void copy_target::accept(const std::shared_ptr<copy_link>& link) {
  const auto id = ++last_;
  copy_link::ear ear;
  ear.at = launcher_;
  ear.connected = [weak = weak_from_this(), id, from = std::weak_ptr<copy_link>(link)] {
    if (const auto me = weak.lock())
      me->links_[id] = from.lock();
  };
  ear.heard = [weak = weak_from_this(), id](const messages::any_msg& m) {
    if (const auto me = weak.lock())
      me->heard(id, m);
  };
  ear.closed = [weak = weak_from_this(), id](const std::string& why) {
    if (const auto me = weak.lock())
      me->closed(id, why);
  };
  link->accept(std::move(ear));
}

void copy_target::heard(core::connection_id from, const messages::any_msg& m) {
  if (speaks_for_its_ranks(from, m))
    act(core_.heard(from, m));
}

bool copy_target::speaks_for_its_ranks(core::connection_id from, const messages::any_msg& m) {
  const auto at = links_.find(from);
  if (at == links_.end() || !m.is<messages::CopyBegin>())
    return at != links_.end();
  const auto link = at->second;
  const auto why = owners_.validation_error(*m.as<messages::CopyBegin>().read(),
                                            link->at(copy_link::source)->name());
  if (!why)
    return true;
  world_.write(launcher_->name(), "ckpt   " + *why);
  link->close(copy_link::target, *why);
  closed(from, *why);
  return false;
}

void copy_target::closed(core::connection_id which, const std::string& why) {
  links_.erase(which);
  act(core_.closed(which, why));
}

void copy_target::act(core::effects first) {
  std::deque<core::effect> todo(std::make_move_iterator(first.begin()),
                                std::make_move_iterator(first.end()));
  for (; !todo.empty(); todo.pop_front()) {
    auto more = std::visit([this](const auto& e) { return perform(e); }, todo.front());
    std::move(more.begin(), more.end(), std::back_inserter(todo));
  }
}

ckpt::target_core::effects copy_target::perform(const core::open& o) {
  const auto made = memory_.open(o);
  return made ? core::effects{} : core_.no_memory(o.which, made.error().what);
}

ckpt::target_core::effects copy_target::perform(const core::grow& g) {
  memory_.grow(g);
  return {};
}

ckpt::target_core::effects copy_target::perform(const core::add& a) {
  memory_.add(a);
  return {};
}

ckpt::target_core::effects copy_target::perform(const core::finish& f) {
  memory_.finish(f);
  world_.write(launcher_->name(),
               fmt::format("ckpt   holds stripe {} of g{} step {} for rank {}", f.header.stripe,
                           f.snapshot.generation, f.snapshot.step, f.snapshot.rank));
  return {};
}

ckpt::target_core::effects copy_target::perform(const core::drop& d) {
  memory_.drop(d);
  return {};
}

ckpt::target_core::effects copy_target::perform(const core::reply& r) {
  if (const auto at = links_.find(r.to); at != links_.end())
    at->second->say(copy_link::target, r.message);
  return {};
}

ckpt::target_core::effects copy_target::perform(const core::note& n) {
  world_.write(launcher_->name(), "ckpt   " + n.event.text);
  return {};
}

} // namespace troupe::sim
