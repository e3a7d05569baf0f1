#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/restart_budget.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/strategy.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

/// What a supervisor decides, without actors: (now, event) → effects. The semantics are those of
/// OTP's supervisor; where two things happen at once, which OTP serialises by blocking, the wishes
/// are merged: *which children must end* and *which must be started*, ending always first.
namespace troupe::sup {

/// Position among the siblings; smaller is earlier, and never reused.
using child_key = id<struct child_tag>;

struct child_options {
  std::string id;
  restart when = restart::permanent;
  /// Nothing for a supervisor: it is as slow as its children, whose limits bound it.
  std::optional<duration> stop_limit;
};

namespace event {
/// Start all children; the first event.
struct begin {};
/// A start asked for by effect::start has succeeded.
struct started {
  child_key child;
};
struct start_failed {
  child_key child;
  std::string why;
};
/// A child has ended, for whatever reason, also when told to.
struct down {
  child_key child;
  bool normal = true;
  std::string why;
};
/// A child of one fate has failed and lives on only to clean up.
struct failing {
  child_key child;
  unsigned incarnation = 0;
  std::string why;
};
/// The time limit given with effect::stop has passed.
struct stop_overdue {
  child_key child;
  unsigned incarnation = 0;
};
/// Only for dynamic supervisors.
struct add {
  child_key child;
  child_options options;
  /// The start repeats work that was lost, and counts against the budget under this name.
  std::optional<std::string> against;
};
/// Only for dynamic supervisors: end this child and forget it. Again: the order is passed on to a
/// child that is on its way down.
struct remove {
  child_key child;
  stop_order order;
};
/// Only for dynamic supervisors: what was counted in an earlier life. The supervisor's own memory
/// is lost with it; the journal has the numbers.
struct recall {
  std::map<std::string, unsigned> used;
};
/// End all children, then the supervisor. Again: as for remove.
struct shutdown {
  stop_order order;
};
} // namespace event

using event_type =
    std::variant<event::begin, event::started, event::start_failed, event::down, event::failing,
                 event::stop_overdue, event::add, event::remove, event::recall, event::shutdown>;

/// The phases of a supervisor, in this order. Only one of one fate ends without being stopped: when
/// all its children have ended well.
enum class supervisor_phase { starting, running, stopping, ended };
inline constexpr phase_table<supervisor_phase> supervisor_phases{
    "a supervisor",
    {
        {supervisor_phase::starting,
         "starting",
         {supervisor_phase::running, supervisor_phase::stopping}},
        {supervisor_phase::running,
         "running",
         {supervisor_phase::stopping, supervisor_phase::ended}},
        {supervisor_phase::stopping, "stopping", {supervisor_phase::ended}},
        {supervisor_phase::ended, "ended", {}},
    }};
const char* to_string(supervisor_phase p);

/// What a report is about.
enum class happening {
  started,       ///< First start.
  restarted,     ///< A later start.
  start_failed,  ///< Its starter failed.
  failed,        ///< Ended and will be started again, unless the budget is spent.
  ended,         ///< Ended and stays so.
  fatal,         ///< Ended badly, and its siblings end with it.
  stopped_badly, ///< Ended with an error while being stopped.
  killed,        ///< Did not end within its limit.
  gave_up,       ///< The supervisor ends because of it.
};

const char* to_string(happening h);

namespace effect {
/// Start it; answered by started or start_failed.
struct start {
  child_key child;
  unsigned incarnation = 0; ///< 0 at the first start.
};
/// Ask it to end; stop_overdue after `limit` if there is one.
struct stop {
  child_key child;
  unsigned incarnation = 0;
  /// Nothing: it was asked before, and its limit runs.
  std::optional<duration> limit;
  stop_order order;
};
/// Answered by `down` like any end. An actor that blocks cannot be killed; nothing in one may
/// block.
struct kill {
  child_key child;
};
/// A dynamic child that had been admitted has ended, for good; `why` unless it ended well. Not
/// during a shutdown.
struct tell_end {
  child_key child;
  std::string id;
  std::optional<error> why;
};
/// This dynamic child is gone, for good, or was never admitted (then `why`).
struct forget {
  child_key child;
  std::optional<error> why;
};
/// All children are up for the first time: this supervisor counts as started. A nested supervisor
/// is up when its children are; before that its end is a failed start.
struct announce {};
/// Everybody is down: end, with this reason if it is not a wish. Nothing happens behind it: the
/// phase is `ended`, and later events find no supervisor.
struct quit {
  std::optional<error> why;
};
/// For the log: what, to whom, why, and in which phase of the supervisor.
struct report {
  happening what = happening::started;
  std::string offender;
  std::string reason;
  supervisor_phase during = supervisor_phase::starting;
};
} // namespace effect

using effect_type = std::variant<effect::start, effect::stop, effect::kill, effect::tell_end,
                                 effect::forget, effect::announce, effect::quit, effect::report>;

/// Down again from everywhere, as an end needs no order; and up from `down` alone, so that no child
/// has two incarnations at once.
enum class child_phase { down, starting, running, stopping };
inline constexpr phase_table<child_phase> child_phases{
    "a child",
    {
        {child_phase::down, "down", {child_phase::starting}},
        {child_phase::starting,
         "starting",
         {child_phase::running, child_phase::stopping, child_phase::down}},
        {child_phase::running, "running", {child_phase::stopping, child_phase::down}},
        {child_phase::stopping, "stopping", {child_phase::down}},
    }};
const char* to_string(child_phase p);

class supervisor_core {
 public:
  struct child {
    child_options options;
    phase_of<child_phases> phase{child_phase::down};
    /// A number for each incarnation, by which a late message about an earlier one is known.
    unsigned starts = 0; ///< How often it was told to start.
    unsigned incarnation() const { return starts - 1; }
  };

  /// A supervisor of a fixed list of children.
  supervisor_core(strategy how, budget limit, std::vector<child_options> children);
  /// A dynamic one: no children at first, each of them independent.
  explicit supervisor_core(budget limit);

  std::vector<effect_type> on(instant now, const event_type& e);

  supervisor_phase phase() const { return phase_; }
  /// Stopping: why it ends by itself; nothing if it was asked to.
  const std::optional<error>& why() const { return why_; }
  const std::map<child_key, child>& children() const { return children_; }
  /// The living or starting child of this id.
  std::optional<child_key> find(const std::string& id) const;
  /// How many failures within the period of the budget were answered by a restart.
  unsigned restarts_used(instant now) const { return budget_.used(now); }
  unsigned restarts_allowed() const { return budget_.allowed(); }
  /// Dynamic: how many of the children were started again, by what that is counted against. Each
  /// name has the whole budget.
  const std::map<std::string, unsigned>& used_by_name() const { return used_by_.used(); }

 private:
  void on(const event::begin&);
  void on(const event::started&);
  void on(const event::start_failed&);
  void on(const event::down&);
  void on(const event::failing&);
  void on(const event::stop_overdue&);
  void on(const event::add&);
  void on(const event::remove&);
  void on(const event::recall&);
  void on(const event::shutdown&);

  /// Events about unknown children are a bug of the shell, but for those of timers.
  child& at(child_key key);
  void became_down(child_key key);
  void failed_to_start(child_key key, const std::string& why, bool refused);
  void ended_unasked(child_key key, bool normal, const std::string& why);
  /// The strategy is applied here, to the two sets.
  void restart_because_of(child_key key, const std::string& why);
  void become_stopping(std::optional<error> why, stop_order order);
  void pass_on(const stop_order& order);
  /// So a worker can tell the end of its generation from that of its tree.
  stop_order because_of_sibling(const std::string& reason) const;
  /// Dynamic children and those of one fate need no sibling while they end.
  bool stops_at_once() const { return dynamic_ || how_ == strategy::one_fate; }
  void settle();
  /// The only place at which a child is first asked to end, so the order holds for every reason.
  void settle_stops();
  /// The only place at which a child is started, so none is started while another one stops.
  void settle_starts();
  void tell(happening what, const child& c, std::string reason);
  void forget(child_key key, std::optional<error> why);
  /// Told and then forgotten, so that what hears of the end may take the id for a new child at
  /// once.
  void forget_ended(child_key key, std::optional<error> why);

  const strategy how_;
  /// Its children come without order and rely on no sibling, so nothing waits for anything.
  const bool dynamic_;
  phase_of<supervisor_phases> phase_{supervisor_phase::starting};
  std::map<child_key, child> children_;
  /// Ids of the children; ordered lookup for dynamic supervisors with many.
  std::map<std::string, child_key> ids_;
  /// A wish and no order: it waits until all that is to end has ended, and goes when the supervisor
  /// stops.
  std::set<child_key> to_start_;
  /// Still to be asked to end, last first. Each with an order of its own: a repair, a removal and a
  /// shutdown may meet.
  std::map<child_key, stop_order, std::greater<>> to_stop_;
  /// Dynamic children to be forgotten once down. Removed and alive: the id stays taken until the
  /// end, or a second child of that name could live beside the first.
  std::set<child_key> to_forget_;
  /// Kept and not counted: a dynamic supervisor may have thousands of children, and is asked after
  /// each event.
  std::size_t starting_ = 0;
  std::size_t stopping_ = 0;
  /// At 0 a supervisor that stops has nothing left to wait for.
  std::size_t living_ = 0; ///< Starting, running or stopping.
  /// Of the failures that were repaired.
  restart_budget budget_;
  /// By name and not by child: a generation is another child each time, and a node keeps what it
  /// has used up.
  restarts_by_name used_by_;
  /// Nothing for a supervisor that was asked to end: it ends well, whatever its children did on the
  /// way.
  std::optional<error> why_;
  // Of the event being handled.
  instant now_{};
  std::vector<effect_type> effects_;
};

} // namespace troupe::sup
