#include "tests/sim/copy_link.hpp"

#include "runtime/base/limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

constexpr duration way_min = 50us, way_max = 300us;

copy_link::side other(copy_link::side one) {
  return one == copy_link::source ? copy_link::target : copy_link::source;
}

} // namespace

void copy_link::tell(side to, duration after, std::function<void(const ear&)> what) {
  last_[to] = std::max(last_[to], world_.events.now() + after);
  world_.events.at(last_[to], [me = shared_from_this(), to, what = std::move(what)] {
    me->ears_[to].at->call([me, to, what] {
      if (me->open_[to])
        what(me->ears_[to]);
    });
  });
}

void copy_link::accept(ear of_target) {
  ears_[target] = std::move(of_target);
  // Both say their names first: a node that is frozen is not there yet.
  tell(target, world_.between(way_min, way_max), [this](const ear& e) {
    e.connected();
    tell(source, world_.between(way_min, way_max), [](const ear& dialler) { dialler.connected(); });
  });
}

void copy_link::say(side from, messages::any_msg m) {
  if (open_[from])
    tell(other(from), world_.between(way_min, way_max),
         [m = std::move(m)](const ear& e) { e.heard(m); });
}

void copy_link::close(side from, std::string why) {
  if (!std::exchange(open_[from], false) || !open_[other(from)])
    return;
  tell(other(from), world_.between(way_min, way_max),
       [this, to = other(from), why = std::move(why)](const ear& e) {
         open_[to] = false;
         e.closed(why);
       });
}

void copy_link::vanish(side from, bool silently) {
  if (!std::exchange(open_[from], false) || !open_[other(from)])
    return;
  const auto after = silently ? duration(limits::lease) : world_.between(way_min, way_max);
  tell(other(from), after, [this, to = other(from), silently](const ear& e) {
    open_[to] = false;
    e.closed(silently ? "nothing is heard of it" : "the connection was closed");
  });
}

} // namespace troupe::sim
