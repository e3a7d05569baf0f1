#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"
#include "runtime/sup/report.hpp"
#include "runtime/sup/strategy.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Supervision trees as data. A tree is a value: it is written down, validated, and only then
/// started by `spawn_root`.
namespace troupe::sup {

namespace detail {
struct node;
/// A child's starter with its types erased: starts the actor and binds its address.
using starter = std::function<caf::actor(context&)>;
tree make_worker(std::string id, restart when, stop_within limit, starter start,
                 std::function<void()> forget);
} // namespace detail

/// A worker or a supervisor with everything below it. Immutable; copies share.
class tree {
 public:
  const std::string& id() const;
  /// The same tree under another restart kind; a nested supervisor is permanent unless told
  /// otherwise.
  tree as(restart when) const;
  /// The same supervisor, found at this address while it runs: requests for its report go there.
  /// Precondition: a supervisor.
  tree at(address<supervisor_handle> where) const;

  explicit tree(std::shared_ptr<const detail::node> root) : node_(std::move(root)) {}
  const detail::node& root() const { return *node_; }

 private:
  std::shared_ptr<const detail::node> node_;
};

/// A leaf. `start(context&)` returns the actor's handle; if it throws, the start has failed. It
/// runs in the supervisor: it spawns and returns. The address is filled when the actor begins, or
/// once `start` has returned, whichever is first.
template<class H, class Start>
tree worker(std::string id, restart when, stop_within limit, address<H> where, Start start) {
  return detail::make_worker(
      std::move(id), when, limit,
      [where, start = std::move(start)](context& ctx) {
        ctx.when_it_begins(
            [where](const caf::strong_actor_ptr& self) { where.bind(caf::actor_cast<H>(self)); });
        const H started = start(ctx);
        where.bind(started);
        return caf::actor_cast<caf::actor>(started);
      },
      [where] { where.clear(); });
}

tree one_for_one(std::string id, budget limit, std::vector<tree> children);
tree one_for_all(std::string id, budget limit, std::vector<tree> children);
tree rest_for_one(std::string id, budget limit, std::vector<tree> children);

/// Children that share one end: see strategy::one_fate. No budget: none is restarted.
tree one_fate(std::string id, std::vector<tree> children);

/// A supervisor of independent children that come and go while it runs: ask it to `start_child` and
/// `stop_child`. `on_end` is called in the supervisor, which must not be held up, for each child
/// that has ended for good, but not while the supervisor itself ends.
tree dynamic(std::string id, budget limit, address<dynamic_handle> where,
             std::function<void(const child_end&)> on_end = {});

/// A child for a dynamic supervisor: a worker, or a supervisor with all that is below it. Answered
/// once a worker's starter has returned, or a supervisor begins; refused if its id is taken by a
/// living child, there are limits::children_max of them, or the budget is spent.
struct start_child {
  tree child;
  /// What the start is counted against, as a restart: each name has the supervisor's whole budget.
  std::optional<std::string> against;
  start_child() : child(nullptr) {}
  explicit start_child(tree c, std::optional<std::string> by = std::nullopt)
      : child(std::move(c)), against(std::move(by)) {}
};

/// Nothing, or one line naming the first mistake: empty or duplicate ids, a budget without a
/// period, a child without time to stop…
result<void> validate(const tree& t);

/// The tree as an indented list, one line per id with kind and strategy: what documents and checks
/// compare with.
std::string outline(const tree& t);

} // namespace troupe::sup

TROUPE_LOCAL_MESSAGE(troupe::sup::start_child)
