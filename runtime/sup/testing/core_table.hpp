#pragma once

#include "runtime/sup/supervisor_core.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

/// A supervisor_core whose children have names: what its tables are written with.
namespace troupe::sup {

inline constexpr budget three_a_minute{3, 60s};

inline child_options permanent(std::string id) {
  return {std::move(id), restart::permanent, 5s};
}
inline child_options transient(std::string id) {
  return {std::move(id), restart::transient, 5s};
}
inline child_options temporary(std::string id) {
  return {std::move(id), restart::temporary, 5s};
}
/// A supervisor below: up only when it says so.
inline child_options nested(std::string id) {
  return {std::move(id), restart::permanent, std::nullopt};
}

/// Tells a core what happens to children by their names, and writes its effects down: "stop c, stop
/// b". Workers start at once unless their name is in `refuse_to_start`. Reports go to `reports`.
class table {
 public:
  table(strategy how, budget limit, std::vector<child_options> children)
      : core(how, limit, std::move(children)) {}
  explicit table(budget limit) : core(limit) {}

  std::string begin() { return tell(event::begin{}); }
  std::string fails(const std::string& id) { return tell(event::down{key(id), false, "bang"}); }
  std::string ends(const std::string& id) {
    return tell(event::down{key(id), true, "as it should"});
  }
  std::string comes_up(const std::string& id) { return tell(event::started{key(id)}); }
  std::string shutdown() { return tell(event::shutdown{}); }
  std::string remove(const std::string& id) { return tell(event::remove{key(id), {}}); }
  std::string add(child_options options, std::optional<std::string> against = std::nullopt) {
    next_ = next_.next();
    return tell(event::add{next_, std::move(options), std::move(against)});
  }
  std::string is_overdue(const std::string& id) {
    return tell(event::stop_overdue{key(id), core.children().at(key(id)).incarnation()});
  }

  std::string tell(const event_type& e) {
    std::string out;
    tell(e, out);
    return out;
  }

  unsigned left() const { return core.restarts_allowed() - core.restarts_used(now); }

  child_key key(const std::string& id) const {
    const auto found = core.find(id);
    REQUIRE(found);
    return *found;
  }

  supervisor_core core;
  instant now{};
  std::set<std::string> refuse_to_start;
  std::vector<std::string> reports;

 private:
  void tell(const event_type& e, std::string& out) {
    for (const auto& effect : core.on(now, e))
      std::visit([&](const auto& it) { write(it, out); }, effect);
  }

  std::string name(child_key k) const { return core.children().at(k).options.id; }
  static void say(std::string& out, const std::string& what) {
    out += (out.empty() ? "" : ", ") + what;
  }

  void write(const effect::start& e, std::string& out) {
    say(out, "start " + name(e.child));
    const auto& options = core.children().at(e.child).options;
    if (refuse_to_start.count(options.id) > 0)
      return tell(event::start_failed{e.child, "no port"}, out);
    if (options.stop_limit)
      tell(event::started{e.child}, out);
  }
  void write(const effect::stop& e, std::string& out) {
    say(out,
        (e.order.because == stop_order::cause::asked && !e.limit && e.order.detail == 9 ? "hurry "
                                                                                        : "stop ") +
            name(e.child));
    if (!e.order.reason.empty())
      out += " (" + e.order.reason + ")";
  }
  void write(const effect::kill& e, std::string& out) { say(out, "kill " + name(e.child)); }
  void write(const effect::tell_end& e, std::string& out) {
    say(out, e.id + (e.why ? " ended: " + e.why->what : " ended well"));
  }
  void write(const effect::forget& e, std::string& out) {
    say(out, e.why ? "refuse: " + e.why->what : "forget");
  }
  void write(const effect::announce&, std::string& out) { say(out, "up"); }
  void write(const effect::quit& e, std::string& out) { say(out, e.why ? "give up" : "end"); }
  void write(const effect::report& e, std::string&) {
    reports.push_back(e.offender + " " + to_string(e.what) + " (" + e.reason + ") while " +
                      to_string(e.during));
  }

  child_key next_{};
};

} // namespace troupe::sup
