#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/sup/report.hpp"
#include "runtime/sup/spec.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace troupe::sup {

/// How a tree ended: nothing if it was asked to, the error if it gave up.
using ending = std::optional<error>;

/// A running tree. Copies are the same tree. Dropping it does not end the tree.
class root {
 public:
  /// Asks the tree to end: last child first, each within its own limit. Returns at once; `on_end`
  /// tells when it is done.
  void stop() const;

  /// As `stop`, then waits for the end at most this long; false if it did not come in time. Not
  /// under simulated time.
  bool shutdown(duration deadline) const;

  /// Ends the tree without asking anybody: what a crash is to the rest of the world. For tests and
  /// last resorts.
  void kill() const;

  /// Nothing while the tree runs.
  std::optional<ending> ended() const;

  /// Reports on the whole tree, from an engine thread; an error if the tree has ended.
  void report(std::function<void(result<node_report>)> take) const;

  struct shared;
  explicit root(std::shared_ptr<shared> of) : shared_(std::move(of)) {}

 private:
  std::shared_ptr<shared> shared_;
};

/// Starts a tree. `on_end` is called once, from an engine thread, after every actor of the tree is
/// down. Precondition: validate(t) (a tree that is not valid is a broken invariant).
root spawn_root(caf::actor_system& system, const tree& t, log::sink sink,
                std::function<void(const ending&)> on_end);

} // namespace troupe::sup
