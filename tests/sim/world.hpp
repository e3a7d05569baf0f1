#pragma once

#include "runtime/base/random.hpp"
#include "tests/sim/agenda.hpp"
#include "tests/sim/observer.hpp"
#include "tests/sim/trace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sim {

/// What must hold did not.
struct violation {
  std::string invariant;
  std::string what;
};

/// What all parts of a simulation share: time, chance, the record of what happened, and the
/// observers.
struct world {
  explicit world(std::uint64_t seed) : random(seed) {}

  agenda events;
  random_source random;
  trace story;
  std::vector<std::shared_ptr<observer>> observers;
  std::optional<violation> broken; ///< the first one; a run ends with it

  template<class Event, class... Args>
  void tell(Event event, const Args&... args) {
    for (const auto& o : observers)
      (o.get()->*event)(args...);
  }

  void write(const std::string& who, const std::string& what) {
    story.line(events.now(), who, what);
  }

  void blame(std::string invariant, std::string what) {
    if (broken)
      return;
    write("-", "VIOLATED " + invariant + ": " + what);
    broken = violation{std::move(invariant), std::move(what)};
  }

  /// Uniform in [least, most].
  duration between(duration least, duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + duration(static_cast<duration::rep>(random.below(span + 1)));
  }

  std::uint64_t next_question() { return ++questions_; }

 private:
  std::uint64_t questions_ = 0;
};

} // namespace troupe::sim
