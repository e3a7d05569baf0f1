#pragma once

#include "actors/node_supervisor/hang_watchdog/busy_time.hpp"
#include "actors/node_supervisor/hang_watchdog/learnt_limits.hpp"
#include "actors/node_supervisor/hang_watchdog/watch_policy.hpp"
#include "diag/progress_host.hpp"
#include "diag/stacks/motion.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Watches how far this node's training processes are, and tells the master: now and then, and at
/// once when one of them stands still for longer than it ever does.
///
/// A process that waits for another one and a process that hangs look alike from here: so nothing
/// is decided at a node. What can only be seen here is whether a process moves though it reports
/// nothing, so a report of a standstill comes after three looks at it.
///
/// A process that is stopped by a signal is the one case in which the kernel alone says all: it is
/// suspected as soon as it has been so for a moment, at any step.
///
/// Wakes when the earliest limit passes. A machine that slept, or a watchdog that was stopped
/// itself, starts all limits anew.
class hang_watchdog_core {
 public:
  /// The processes of a generation; none: let go of all.
  struct watch {
    std::vector<diag::watched_process> processes;
  };
  /// Answered at once by pages_read().
  struct read {
    std::vector<std::uint32_t> local_ranks;
  };
  /// Answered by looked() under the same number, or never.
  struct look {
    std::uint64_t question = 0;
    std::vector<std::uint32_t> local_ranks;
  };
  /// Its answer goes to the master as MergedStacks; this core does not wait for it.
  struct dump {
    std::uint64_t number = 0;
    generation about;
    std::vector<std::uint32_t> local_ranks;
    duration within{};
  };
  /// For the master; lost if there is no link.
  struct report {
    messages::any_msg message;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<watch, read, look, dump, report, note>;
  using effects = std::vector<effect>;

  hang_watchdog_core(node_name node, messages::author author, watch_policy policy = {});

  // From the agent.
  effects watched(instant now, const messages::msg<messages::Watched>& m);

  // From the host.
  effects pages_read(instant now, const std::vector<diag::page_reading>& readings);
  effects looked(instant now, std::uint64_t question, const std::vector<diag::process_look>& looks);

  // From the master.
  effects progress_wanted(instant now, const messages::msg<messages::ProgressWanted>& m);
  effects stacks_wanted(instant now, const messages::msg<messages::StacksWanted>& m);
  effects diagnosed(instant now, const messages::msg<messages::Diagnosed>& m);
  effects cleared(instant now, const messages::msg<messages::Cleared>& m);
  /// There is a new link: a master that may know nothing.
  effects linked(instant now);

  /// `slept`: as the host says. More than before means that the machine was asleep.
  effects tick(instant now, duration slept);
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  /// What is thought of one rank.
  enum class standing : std::uint8_t {
    going,     ///< it goes on, or has not stood for long
    suspected, ///< it was looked at in a standstill that lasts
    traced,    ///< a debugger is attached: it may stand for as long as that
  };
  static constexpr phase_table<standing> standings{
      "a watched rank",
      {{standing::going, "going", {standing::suspected, standing::traced}},
       {standing::suspected, "suspected", {standing::going, standing::suspected, standing::traced}},
       {standing::traced, "traced", {standing::going, standing::traced}}}};

  struct watched_rank {
    diag::watched_process what;
    instant since;                       ///< it is watched
    std::optional<diag::page_view> page; ///< as it was last read
    instant changed;                     ///< something on its page, or its limit began anew
    std::optional<instant> stopped;      ///< it was first seen stopped by a signal, and is so still
    bool gone = false;                   ///< its process is: it stands nowhere
    learnt_limits limits;
    busy_time busy;
    std::optional<busy_time::measured> busy_now;
    diag::compared_looks looks; ///< that are under way
    diag::compared_looks moves; ///< the last series of them
    std::optional<instant> looked;
    phase_of<standings> is{standing::going};
    /// The next look is when the standstill has lasted this long; 0: as long as its limit.
    duration look_again_at{};
  };
  /// Looks that are under way; one series at a time, for all ranks that need one.
  struct look_series {
    std::vector<std::uint32_t> local_ranks;
    std::uint32_t made = 0;
    std::uint64_t question = 0; ///< of the look that is not answered; 0: none
    instant next;               ///< the next look, or the end of waiting for an answer
  };

  // What is known of one rank (…_ranks.cpp).
  /// It has made a step, entered a collective or taken a batch: what it reports means something.
  static bool is_fed(const watched_rank& r);
  /// Since then it stands: since its page changed, or since it was stopped.
  static instant still_since(const watched_rank& r);
  static bool is_suspect(const watched_rank& r) { return r.is == standing::suspected; }
  /// It has stood for so long that it must be looked at.
  bool is_due(instant now, const watched_rank& r) const;
  duration limit_of(const watched_rank& r) const;
  duration look_at(const watched_rank& r) const;
  void take_page(instant now, watched_rank& r, const diag::page_reading& reading);
  void take_state(instant now, watched_rank& r, char state);
  void went_on(watched_rank& r, duration stood);
  void let_go(watched_rank& r);
  void conclude(effects& out, instant now, watched_rank& r);
  /// Is it so much slower than it was that the master is to hear it now?
  bool is_slower(const watched_rank& r) const;

  void start_anew(effects& out, instant now, duration away);
  void begin_looks(effects& out, instant now, std::vector<std::uint32_t> local_ranks);
  void look_once(effects& out, instant now);
  bool has_seen_enough() const;
  void end_looks(effects& out, instant now);
  void read_all(effects& out, instant now);
  /// What follows from the pages as they are now: looks, reports, the next time to read.
  void look_where_needed(effects& out, instant now);
  void report_where_needed(effects& out, instant now);
  void schedule_read(instant now);
  std::vector<std::uint32_t> local_ranks() const;
  /// At the end of each event: what holds whatever came.
  effects checked(instant now, effects out) const;

  // Reports (…_reports.cpp).
  void send_report(effects& out, instant now);
  void write_rank(instant now, const watched_rank& r, messages::RankProgress::Builder to) const;
  duration report_period() const;
  bool has_pages() const;
  void say(effects& out, log::level severity, const char* name, std::string text) const;

  node_name node_;
  messages::author author_;
  watch_policy policy_;
  generation about_;
  std::uint32_t world_size_ = 0;
  /// By local rank; bounded by limits::watched_ranks_max.
  std::map<std::uint32_t, watched_rank> ranks_;
  std::optional<look_series> series_;
  std::uint64_t last_question_ = 0;
  std::optional<instant> next_read_;
  instant next_report_;
  std::optional<instant> last_report_;
  bool ended_well_ = false;    ///< if nothing is watched: its processes have, by themselves
  bool report_wanted_ = false; ///< as soon as the pages are read
  std::uint32_t early_reports_ = 0;
  std::uint64_t answers_ = 0; ///< the newest question of the master
  bool answer_with_looks_ = false;
  std::optional<duration> slept_;
};

} // namespace troupe::actors
