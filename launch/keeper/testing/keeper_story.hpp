#pragma once

#include "launch/keeper/keeper_core.hpp"
#include "launch/keeper/limits.hpp"
#include "messages/conversations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

namespace troupe::launch::testing {

using namespace troupe::messages;

/// What the core wants, in words.
struct words {
  std::string operator()(const keeper_core::start_supervisor&) const { return "start supervisor"; }
  std::string operator()(const keeper_core::send& e) const {
    std::string said;
    const bool known =
        route(e.what, keeper_news{},
              receivers{[&](const msg<ProcessPresent>& m) {
                          auto p = m.read();
                          said = fmt::format("present {} (pid {}, label {})", p->getProcess(),
                                             p->getPid(), p->getLabel());
                        },
                        [&](const msg<AllPresented>& m) {
                          said = fmt::format("presented, life {}", m.read()->getEarlierLives());
                        },
                        [&](const msg<ProcessEnded>& m) {
                          auto p = m.read();
                          said = fmt::format("{} ended with {}{}", p->getProcess(),
                                             p->getSignalled() ? "signal " : "", p->getNumber());
                        },
                        [&](const msg<StraysAwaited>& m) {
                          auto left = m.read();
                          said = fmt::format("waits for {}: {}, {} ms quiet, {} ms in all",
                                             left->getCount(), left->getProcesses().cStr(),
                                             left->getQuietUs() / 1000, left->getLeftUs() / 1000);
                        },
                        [&](const msg<StraysSwept>& m) {
                          auto what = m.read();
                          said = fmt::format("swept {}", what->getKilled());
                          if (what->getEnded() > 0)
                            said += fmt::format(", {} ended", what->getEnded());
                        },
                        [&](const msg<UserSignal>& m) {
                          said = fmt::format("user's {}", m.read()->getSignal());
                        }});
    CHECK(known);
    return said;
  }
  std::string operator()(const keeper_core::signal& e) const {
    return fmt::format("kill {}{} with {}", e.group ? "group " : "", e.pid, e.number);
  }
  std::string operator()(const keeper_core::start_store& e) const {
    return fmt::format("start store {}", e.order.read()->getProcess());
  }
  std::string operator()(const keeper_core::refuse_store& e) const {
    return fmt::format("refuse store: {}", e.why);
  }
  std::string operator()(const keeper_core::keep_file& e) const {
    return fmt::format("keep in {}", e.slot);
  }
  std::string operator()(const keeper_core::start_orphan_reaper&) const {
    return "start orphan reaper";
  }
  std::string operator()(const keeper_core::leave_foreground&) const { return "leave foreground"; }
  std::string operator()(const keeper_core::report_error& e) const {
    return fmt::format("say: {}", e.what);
  }
  std::string operator()(const keeper_core::kill_group&) const { return "kill all in the group"; }
  std::string operator()(const keeper_core::look&) const { return "look"; }
  std::string operator()(const keeper_core::finish& e) const {
    return fmt::format("finish {}{}", e.exit_code, e.error.empty() ? "" : ": " + e.error);
  }
};

inline std::string text(const keeper_core::effects& effects) {
  std::string all;
  for (const auto& e : effects)
    all += (all.empty() ? "" : ", ") + std::visit(words{}, e);
  return all;
}

inline const ports::exit_status killed{true, SIGKILL};

/// Of a keeper that found pid 9 when it began.
struct story {
  keeper_core core;
  instant now{1h};

  explicit story(bool grouped = false) : core({SIGTERM, SIGINT}, {9}, grouped, false) {
    CHECK(text(core.begin(now)) == "start supervisor");
    CHECK(supervisor(100) == "presented, life 0");
  }
  std::string supervisor(pid_t pid) { return text(core.supervisor_started(now, pid)); }
  std::string refused() { return text(core.supervisor_not_started(now, "EAGAIN")); }
  /// Until something happens by itself.
  std::string waits() {
    std::string what;
    while (what.empty())
      what = passes(*core.next_wakeup() - now);
    return what;
  }
  std::string crash() { return text(core.supervisor_ended(now, killed)); }
  template<class T, class Fill>
  std::string says(Fill&& fill) {
    return text(core.received(now, local<T>("node_supervisor", fill).any()));
  }
  template<class T>
  std::string says() {
    return says<T>([](auto) {});
  }
  std::string starts(std::uint64_t process, pid_t pid) {
    return says<ProcessStarted>([&](auto b) {
      b.setProcess(process);
      b.setPid(pid);
      b.setLabel(process + 70);
    });
  }
  std::string adopts(std::uint64_t process) {
    return says<ProcessAdopted>([process](auto b) { b.setProcess(process); });
  }
  std::string signals(std::uint64_t process, int number) {
    return says<ProcessSignal>([&](auto b) {
      b.setProcess(process);
      b.setSignal(number);
    });
  }
  std::string wants_store(std::uint64_t process) {
    return text(core.received(now, store(process).any()));
  }
  std::string keeps(std::size_t slot) {
    return says<Kept>([slot](auto b) { b.setSlot(static_cast<std::uint8_t>(slot)); });
  }
  static store_order store(std::uint64_t process) {
    return local<StoreWanted>("node_supervisor", [process](auto b) { b.setProcess(process); });
  }
  void runs(std::uint64_t process, pid_t pid) {
    CHECK(says<ProcessStarting>() == "");
    CHECK(starts(process, pid) == "look");
  }
  std::string ends(pid_t pid, ports::exit_status how) {
    return text(core.child_ended(now, pid, how));
  }
  /// Without times: what is left is killed at once.
  std::string wants_sweep(duration quiet = {}, duration within = {}) {
    return says<SweepWanted>([&](auto b) {
      b.setQuietUs(static_cast<std::uint64_t>(quiet / 1us));
      b.setWithinUs(static_cast<std::uint64_t>(within / 1us));
    });
  }
  /// Those that are awaited are not among what the keeper looks at.
  std::string sees(const std::set<pid_t>& pids, bool outdated = false) {
    std::vector<left_process> left;
    const auto awaited = core.awaited();
    for (const pid_t pid : pids)
      if (std::find(awaited.begin(), awaited.end(), pid) == awaited.end()) {
        const auto group = group_of.find(pid);
        left.push_back({pid, group == group_of.end() ? pid : group->second, "stray", false, false,
                        managers.count(pid) != 0, false});
      }
    return text(core.children(now, left, outdated));
  }
  std::map<pid_t, pid_t> group_of; ///< of a stray that leads none
  std::set<pid_t> managers;
  std::string group_killed(const std::vector<pid_t>& members) {
    return text(core.group_killed(now, members));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace troupe::launch::testing
