#pragma once

#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"
#include "tests/actors/fate.hpp"

#include <array>

namespace troupe::actors::testing {

/// Two nodes whose processes write anything into their pages, whose looks find anything, and whose
/// messages come in any order or not at all. Throws where something does not hold that must:
/// a verdict has a culprit or is of a link, no event has effects without bound, and time goes on.
class diagnosis_world {
 public:
  explicit diagnosis_world(fate choose);
  /// The next event.
  void strike();
  std::size_t verdicts() const { return verdicts_; }

 private:
  static constexpr std::uint32_t per_node = 3;
  struct node {
    explicit node(hang_watchdog_core c) : core(std::move(c)) {}
    hang_watchdog_core core;
    std::vector<hang_watchdog_core::look> asked;
    std::array<diag::page_view, per_node> pages;
  };
  void start_generation();
  void scribble(node& n);
  diag::process_look any_look(std::uint32_t local);
  void perform(node& n, const hang_watchdog_core::effects& effects);
  void perform(const diagnosis_core::effects& effects);
  void deliver_to_node(node& n, const messages::any_msg& m);
  std::uint64_t any_number();

  fate choose_;
  instant now_ = instant{} + 1h;
  duration slept_{};
  std::size_t verdicts_ = 0;
  std::uint64_t generation_ = 0;
  messages::author planner_{"master/planner"};
  std::vector<node> nodes_;
  diagnosis_core master_;
  std::vector<messages::any_msg> to_master_;
  std::vector<std::pair<std::size_t, messages::any_msg>> to_nodes_;
};

} // namespace troupe::actors::testing
