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
  void happen(event_type e);
  void went_down(const caf::down_msg& m);
  void came_up(const child_up& m);
  answer<done> add(const tree& child);
  answer<done> remove(const std::string& id);
  answer<node_report> report() const;

 private:
  struct slot {
    tree spec;
    std::optional<context> ctx; // of the latest incarnation
    caf::actor current;
    instant since{};
  };

  void perform(const effect::start& e);
  void perform(const effect::stop& e);
  void perform(const effect::kill& e);
  void perform(const effect::forget& e);
  void perform(const effect::announce& e);
  void perform(const effect::quit& e);
  void perform(const effect::report& e);
  caf::actor start_supervisor(const slot& s, child_key key);
  described_child describe_child(child_key key, const slot& s) const;

  supervisor_self self_;
  const tree spec_;
  const context ctx_;
  std::function<void()> on_up_;
  supervisor_core core_;
  const instant since_;
  std::map<child_key, slot> slots_;
  std::map<caf::actor_id, child_key> living_;
  std::multimap<child_key, promise<done>> removals_;
  std::optional<error> refused_;
  child_key last_key_{};
  std::deque<event_type> events_;
  bool deciding_ = false;
};

} // namespace troupe::sup::detail
