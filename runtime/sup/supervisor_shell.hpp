#pragma once

#include "runtime/sup/supervisor_parts.hpp"

#include <caf/actor.hpp>
#include <caf/system_messages.hpp>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace troupe::sup::detail {

/// Runs a supervisor_core: turns messages into its events and its effects into actors. Nothing is
/// decided here.
class supervisor_shell {
 public:
  supervisor_shell(supervisor_self self, tree spec, context ctx, std::function<void()> on_up);
  ~supervisor_shell();
  supervisor_shell(const supervisor_shell&) = delete;
  supervisor_shell& operator=(const supervisor_shell&) = delete;

  const char* phase() const { return to_string(core_.phase()); }
  void obey(const stop_order& order);
  void happen(event_type e);
  void went_down(const caf::down_msg& m);
  void is_failing(const child_failing& m);
  void came_up(const child_up& m);
  answer<done> add(const start_child& m);
  answer<done> remove(const stop_child& m);
  void recall(const recall_restarts& m);
  answer<node_report> report() const;

 private:
  struct slot {
    tree spec;
    std::optional<context> ctx; // of the latest incarnation
    caf::actor current;
    instant since{};
    std::optional<instant> ended_at; // of the incarnation before
    std::optional<std::string> ended_why;
    std::string asked; // to end, and what for
  };
  /// A child that a dynamic supervisor had: shown for limits::ended_shown_for.
  struct past_child {
    node_report report;
    instant ended_at;
  };

  void perform(const effect::start& e);
  void perform(const effect::stop& e);
  void perform(const effect::kill& e);
  void perform(const effect::tell_end& e);
  void perform(const effect::forget& e);
  void perform(const effect::announce& e);
  void perform(const effect::quit& e);
  void perform(const effect::report& e);
  caf::actor start_supervisor(const slot& s, child_key key);
  node_report known_of(const slot& s) const;
  described_child describe_child(child_key key, const slot& s) const;
  void describe_past(node_report& own) const;

  supervisor_self self_;
  const tree spec_;
  const context ctx_;
  std::function<void()> on_up_;
  supervisor_core core_;
  const instant since_;
  std::string asked_; ///< to end, and what for
  std::map<child_key, slot> slots_;
  std::deque<past_child> past_; ///< Newest last; bounded by limits::ended_shown_max.
  std::map<caf::actor_id, child_key> living_;
  std::multimap<child_key, promise<done>> removals_;
  std::optional<error> refused_;
  child_key last_key_{};
  std::deque<event_type> events_;
  bool deciding_ = false;
};

} // namespace troupe::sup::detail
