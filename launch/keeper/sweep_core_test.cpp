#include "launch/keeper/sweep_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace troupe;
using namespace troupe::launch;

namespace {

struct words {
  std::string operator()(const sweep_core::signal& e) const {
    return fmt::format("{} to {}{}", e.number, e.group ? "group " : "", e.pid);
  }
  std::string operator()(const sweep_core::kill_group&) const { return "kill all"; }
  std::string operator()(const sweep_core::look&) const { return "look"; }
  std::string operator()(const sweep_core::tell_waiting& e) const {
    return fmt::format("waits for {}: {} quiet, {} in all", e.processes.size(),
                       in_words(e.quiet_left), in_words(e.left));
  }
  std::string operator()(const sweep_core::finished& e) const {
    return fmt::format("over: {} ended, {} killed", e.ended, e.killed);
  }
};

std::string text(const sweep_core::effects& effects) {
  std::string all;
  for (const auto& e : effects)
    all += (all.empty() ? "" : ", ") + std::visit(words{}, e);
  return all;
}

left_process stray(pid_t pid) {
  return {pid, 1, "stray", false, false, false, false};
}

left_process manager(pid_t pid, bool holds = false) {
  return {pid, pid, "torch_shm_manag", false, false, true, holds};
}

struct story {
  sweep_core core;
  instant now{1h};
  bool grouped = false;

  std::string wanted(duration quiet, duration within) {
    return text(core.wanted(now, quiet, within));
  }
  std::string sees(std::vector<left_process> left, bool outdated = false) {
    return text(core.seen(now, {std::move(left), outdated, false, grouped}));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace

TEST_SUITE("sweep_core") {
  TEST_CASE("nothing left: over at the first look, whatever time there was") {
    story s;
    CHECK(s.wanted(30s, 35s) == "look");
    CHECK(s.sees({}) == "over: 0 ended, 0 killed");
    CHECK(s.core.next_wakeup() == std::nullopt);
    CHECK(s.sees({stray(5)}) == "");
  }

  TEST_CASE("quiet, then asked once, then killed once") {
    story s;
    s.wanted(10s, 15s);
    CHECK(s.sees({stray(5)}) == "");
    CHECK(s.core.next_wakeup() == s.now + limits::left_told_after);
    CHECK(s.passes(1s) == "waits for 1: 9.0 s quiet, 14.0 s in all");
    CHECK(s.passes(9s) == "look");
    CHECK(s.sees({stray(5)}) == "15 to 5, 18 to 5");
    CHECK(s.sees({stray(5)}) == "");
    CHECK(s.passes(5s) == "look");
    CHECK(s.sees({stray(5)}) == "9 to 5");
    CHECK(s.sees({stray(5)}) == "");
    CHECK(s.sees({}) == "over: 0 ended, 1 killed");
  }

  TEST_CASE("what appears later is asked when it appears, and has no time of its own") {
    story s;
    s.wanted(0s, 10s);
    CHECK(s.sees({stray(5)}) == "15 to 5, 18 to 5");
    s.now += 9s;
    CHECK(s.sees({stray(6)}) == "15 to 6, 18 to 6");
    s.passes(1s);
    CHECK(s.sees({stray(6)}) == "9 to 6");
    CHECK(s.sees({}) == "over: 1 ended, 1 killed");
  }

  TEST_CASE("of two orders the one with less patience holds, in each part") {
    story s;
    s.wanted(10s, 20s);
    s.sees({stray(5)});
    s.wanted(0s, 30s);
    CHECK(s.sees({stray(5)}) == "15 to 5, 18 to 5");
    s.wanted(0s, 0s);
    CHECK(s.sees({stray(5)}) == "9 to 5");
    s.wanted(0s, 30s);
    CHECK(s.sees({}) == "over: 0 ended, 1 killed");
  }

  TEST_CASE("hurry and kill_now are for what still has time, and nothing else") {
    story s;
    CHECK(text(s.core.hurry(s.now)) == "");
    CHECK(text(s.core.kill_now(s.now)) == "");
    s.wanted(10s, 20s);
    CHECK(text(s.core.hurry(s.now)) == "look");
    CHECK(text(s.core.hurry(s.now)) == "");
    CHECK(text(s.core.kill_now(s.now)) == "look");
    CHECK(text(s.core.kill_now(s.now)) == "");
  }

  TEST_CASE("the next supervisor's sweep asks no process twice") {
    story s;
    s.wanted(0s, 10s);
    CHECK(s.sees({stray(5)}) == "15 to 5, 18 to 5");
    s.core.cancel();
    CHECK_FALSE(s.core.under_way());
    s.wanted(0s, 10s);
    CHECK(s.sees({stray(5)}) == "");
    CHECK(s.sees({stray(5), stray(6)}) == "15 to 6, 18 to 6");
  }

  TEST_CASE("a pid that is another process's later is asked like any") {
    story s;
    s.wanted(0s, 10s);
    s.sees({stray(5)});
    s.sees({});
    s.wanted(0s, 10s);
    CHECK(s.sees({stray(5)}) == "15 to 5, 18 to 5");
  }

  TEST_CASE("what the kernel holds does not hold up a sweep for ever") {
    story s;
    s.wanted(0s, 0s);
    CHECK(s.sees({stray(5)}) == "9 to 5");
    CHECK(s.core.next_wakeup() == s.now + limits::left_told_after);
    s.passes(limits::left_told_after);
    CHECK(s.core.next_wakeup() == instant{1h} + limits::kill_within);
    CHECK(s.passes(limits::kill_within) == "over: 0 ended, 1 killed");
  }

  TEST_CASE("a shared-memory manager is not waited for, and killed when it was alone for long") {
    story s;
    s.grouped = true;
    s.wanted(0s, 30s);
    CHECK(s.sees({manager(7), stray(5)}) == "15 to 5, 18 to 5");
    s.now += 20s;
    CHECK(s.sees({manager(7)}) == "over: 1 ended, 0 killed");
    CHECK(s.core.managers_left());
    CHECK(s.core.next_wakeup() == s.now + limits::memory_unlinked_within);
    // The next generation has come and gone.
    s.wanted(0s, 30s);
    CHECK(s.sees({manager(7)}) == "over: 0 ended, 0 killed");
    CHECK(s.passes(limits::memory_unlinked_within) == "9 to 7");
    CHECK(s.passes(1s) == "");
    CHECK(s.sees({}) == "");
    CHECK_FALSE(s.core.managers_left());
  }

  TEST_CASE("a manager that holds a port or a device is waited for, and has its own time") {
    story s;
    s.wanted(0s, 1s);
    CHECK(s.sees({manager(7, true)}) == "");
    CHECK(s.passes(1s) == "look");
    CHECK(s.sees({manager(7, true)}) == "");
    CHECK(s.sees({}) == "over: 0 ended, 0 killed");

    story deaf;
    deaf.wanted(0s, 10s);
    deaf.sees({manager(7, true)});
    CHECK(deaf.passes(limits::memory_unlinked_within) == "9 to 7");
    CHECK(deaf.sees({}) == "over: 0 ended, 0 killed");
  }

  TEST_CASE("the group is the last resort while a manager is in it") {
    story s;
    s.grouped = true;
    s.wanted(0s, 0s);
    CHECK(s.sees({manager(7), stray(5)}) == "9 to 5");
    CHECK(s.sees({manager(7), stray(6)}) == "9 to 6");
    s.now += limits::outrun_after;
    CHECK(s.sees({manager(7), stray(8)}) == "9 to 8, kill all");
    CHECK(text(s.core.group_killed({7, 8, 9})) == "look");
    CHECK(s.sees({}) == "over: 0 ended, 5 killed");
  }

  TEST_CASE("a child that is killed before it becomes a manager goes as any other") {
    story s;
    s.wanted(0s, 0s);
    CHECK(s.sees({stray(7)}) == "9 to 7");
    CHECK(s.sees({manager(7)}) == "");
    CHECK(s.sees({}) == "over: 0 ended, 1 killed");
  }
}
