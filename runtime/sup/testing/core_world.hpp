#pragma once

#include "runtime/base/invariant.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/supervisor_core.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace troupe::sup {

/// A world of children for one supervisor_core: does what the core's effects say, lets fate strike,
/// and throws invariant_broken as soon as the core does what a supervisor must never do. Fate is a
/// choice in [0, bound), from a seed or from a fuzzer's bytes.
class core_world {
 public:
  using fate = std::function<std::uint64_t(std::uint64_t bound)>;

  explicit core_world(fate choose);

  /// One thing happens: a child dies, obeys, comes up, is added; time passes; the end is ordered.
  void strike();

  /// From now on all children do as told. Returns once nothing more follows; then throws unless the
  /// tree is whole, or gone.
  void let_be();

  const supervisor_core& core() const { return core_; }

 private:
  struct being {
    child_options options;
    bool supervisor = false; ///< Comes up some time after its start.
    bool alive = false;
    bool starting = false;
    bool stopping = false;
    bool overdue = false;
    unsigned incarnation = 0;
    std::optional<instant> deadline;
  };

  std::vector<child_options> draw_children();
  supervisor_core draw_core();

  void happen(event_type e);
  void obey(const effect::start& e);
  void obey(const effect::stop& e);
  void obey(const effect::kill& e);
  void obey(const effect::tell_end& e);
  void obey(const effect::forget& e);
  void obey(const effect::announce& e);
  void obey(const effect::quit& e);
  void obey(const effect::report& e);

  bool one_fate() const { return how_ == strategy::one_fate; }
  void die(child_key key, bool normal);
  void pass_time();
  void add_child();
  void fail_early();
  std::optional<child_key> some(bool (*is)(const being&));
  static bool relies_on_order(const being& b) { return b.options.when == restart::permanent; }

  fate choose_;
  bool fair_ = false;
  bool dynamic_ = false;
  strategy how_ = strategy::one_for_one;
  budget budget_{};
  std::map<child_key, being> beings_;
  child_key last_key_{};
  instant now_{};
  supervisor_core core_;
  std::deque<event_type> events_;
  // What the core has been seen to do.
  bool announced_ = false;
  bool ended_ = false;
  bool shutting_down_ = false;
  std::deque<instant> counted_;
};

} // namespace troupe::sup
