#pragma once

#include "tests/actors/fate.hpp"
#include "tests/actors/vocabulary.hpp"

#include <deque>
#include <optional>
#include <set>

namespace troupe::actors::testing {

/// A node as the master sees it: it obeys the conversation in messages/training.capnp, without any
/// process. What is on its way when a link breaks is lost.
class naive_node {
 public:
  void be(const node_name& name) { name_ = name; }

  // The link, and whether the master knows of the node.
  bool linked() const { return linked_; }
  bool known() const { return known_; }
  /// A node that the master has lost comes as a new incarnation: its processes are gone.
  void link();
  void break_link();
  void be_lost();
  /// Its supervisor and its processes are gone, and another supervisor comes under its name.
  void be_replaced();
  messages::msg<messages::NodePresent> hello() const;

  /// On its way to the node; lost without a link.
  void send(const messages::any_msg& m);
  bool has_directives() const { return !directives_.empty(); }
  void take_directive();
  /// The oldest of what the node has said, if that has arrived.
  std::optional<messages::any_msg> said();

  /// Its processes go on: they end, fail, finish. `failing`: of 8 ends. In peace all of them end.
  void stir(const fate& choose, bool calm, std::uint64_t failing);

  bool heard_verdict() const { return verdict_.has_value(); }
  std::optional<bool> verdict() const { return verdict_; }
  /// The generation whose processes train; nothing if they are on their way down, or done.
  std::optional<std::uint64_t> trains() const;
  bool was_ready_for(std::uint64_t g) const { return ready_.count(g) != 0; }

 private:
  using phase = messages::NodeState::Phase;

  void follow(const messages::any_msg& m);
  void prepare(std::uint64_t g);
  void stop(std::uint64_t g);
  void say(const messages::any_msg& m);
  void say_state();
  void clean(const fate& choose, bool calm);

  node_name name_;
  std::uint64_t which_ = 0;
  bool linked_ = false;
  bool known_ = false;
  doing state_;
  bool dirty_ = false;                     ///< processes of `state_` or older are on their way down
  bool immortal_ = false;                  ///< and never end
  bool judged_ = false;                    ///< whether they are has been chosen
  std::optional<std::uint64_t> stop_open_; ///< to be answered when it is clean
  std::optional<bool> verdict_;
  std::set<std::uint64_t> ready_;
  std::deque<messages::any_msg> directives_; ///< on their way to it
  std::deque<messages::any_msg> said_;       ///< on its way to the master
};

} // namespace troupe::actors::testing
