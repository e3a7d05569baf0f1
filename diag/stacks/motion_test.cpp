#include "diag/stacks/motion.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <map>

using namespace troupe;
using namespace troupe::diag;
using namespace std::chrono_literals;

namespace {

constexpr std::int32_t pid = 40, helper = 41;

/// Of a process with Python, whose main thread is at `stack`. A thread that runs is at another
/// place in its innermost function each time.
process_look look(std::uint64_t stack, duration cpu, std::uint64_t bytes = 0, char state = 'S') {
  process_look l;
  l.pid = pid;
  l.started = 900;
  l.state = state;
  l.cpu_time = cpu;
  l.io_bytes = bytes;
  l.threads = {{pid, cpu, stack}};
  l.threads[0].io_bytes = bytes;
  l.threads[0].position = static_cast<std::uint64_t>(cpu.count());
  l.threads[0].waits = awaited::lock;
  return l;
}

child_look child(std::uint64_t stack, duration cpu, std::uint64_t bytes = 0) {
  child_look c;
  c.pid = 50;
  c.cpu_time = cpu;
  c.io_bytes = bytes;
  c.threads = {{50, cpu, stack}};
  return c;
}

/// A fifth of a second apart.
compared_looks compared(std::initializer_list<process_look> looks) {
  compared_looks all;
  instant now{1h};
  for (const auto& l : looks) {
    all.add(now, l);
    now += 200ms;
  }
  return all;
}

motion moves(std::initializer_list<process_look> looks) {
  return compared(looks).moves();
}

process_look with(process_look l, child_look c) {
  l.children.push_back(std::move(c));
  return l;
}

process_look with(process_look l, thread_look t) {
  l.threads.push_back(t);
  return l;
}

} // namespace

TEST_CASE("what moves, sleeps, spins and is stopped") {
  CHECK(moves({look(1, 1s), look(1, 1s), look(1, 1s)}) == motion::sleeps);
  CHECK(moves({look(1, 1s), look(1, 1200ms), look(1, 1400ms)}) == motion::spins);
  CHECK(moves({look(1, 1s), look(2, 1200ms), look(1, 1400ms)}) == motion::moves);
  CHECK(moves({look(1, 1s), look(1, 1s, 64u << 10)}) == motion::moves);
  CHECK(moves({look(1, 1s, 1u << 20), look(1, 1s, 900'000)}) ==
        motion::moves); // it closed a connection
  CHECK(moves({look(1, 1s, 0, 'T'), look(1, 1s, 0, 'T')}) == motion::stopped);
  CHECK(moves({look(1, 1s, 0, 't')}) == motion::stopped);
  // It was stopped while it moved.
  CHECK(moves({look(1, 1s), look(2, 1200ms, 1u << 20, 'T')}) == motion::stopped);
}

TEST_CASE("one look tells nothing but a stop, and none nothing at all") {
  CHECK(compared_looks().moves() == motion::unknown);
  CHECK(!compared_looks().has_any());
  CHECK(moves({look(1, 1s)}) == motion::unknown);
  CHECK(compared({look(1, 1s)}).cpu_permille() == 0);
}

TEST_CASE("a little CPU time is a timer's, and a little I/O a line of a log") {
  CHECK(moves({look(1, 1000ms), look(2, 1005ms)}) == motion::sleeps); // 2.5 %
  CHECK(moves({look(1, 1000ms), look(2, 1006ms)}) == motion::moves);
  CHECK(moves({look(1, 1s), look(1, 1s, (64u << 10) - 1)}) == motion::sleeps);
  // Bytes of several looks add up.
  const auto all = compared({look(1, 1s), look(1, 1s, 40u << 10), look(1, 1s, 80u << 10)});
  CHECK(all.moves() == motion::moves);
  CHECK(all.io_moves());
}

TEST_CASE("what works without Python, or where that cannot be read, may move") {
  auto before = look(1, 1s), after = look(1, 1200ms);
  before.threads.clear();
  CHECK(moves({before, after}) == motion::unknown);
  CHECK(moves({after, before}) == motion::sleeps);
  after.threads.clear();
  CHECK(moves({before, after}) == motion::unknown);
}

TEST_CASE("a thread beside those that decide says nothing, whatever it does") {
  const auto first = look(1, 1s), later = look(1, 1200ms);
  CHECK(moves({with(first, thread_look{helper, 1s, 7}),
               with(later, thread_look{helper, 1200ms, 8})}) == motion::spins);
  CHECK(moves({first, with(later, thread_look{helper, 1010ms, 7})}) == motion::spins);
  auto turned = with(later, thread_look{helper, 1010ms, 7});
  std::swap(turned.threads.front(), turned.threads.back());
  CHECK(moves({with(first, thread_look{helper, 1s, 7}), turned}) == motion::spins);
  // A deadlock beside a thread that computes, and that sends what it has computed.
  auto from = with(look(1, 1s), thread_look{helper, 1s, 7}),
       to = with(look(1, 1s), thread_look{helper, 1200ms, 8});
  to.cpu_time = 1200ms;
  to.io_bytes = 10u << 20;
  CHECK(moves({from, to}) == motion::sleeps);
}

TEST_CASE("the script's thread decides, where it is not the main one") {
  const auto waits = [](duration cpu, std::uint64_t stack) {
    auto l = with(look(1, 1s), thread_look{helper, cpu, stack});
    l.threads[0].joins = true;
    l.script = helper;
    return l;
  };
  CHECK(moves({waits(1s, 7), waits(1200ms, 8)}) == motion::moves);
  CHECK(moves({waits(1s, 7), waits(1s, 7)}) == motion::sleeps);
  CHECK(moves({waits(1s, 7), waits(1200ms, 7)}) == motion::works);
}

TEST_CASE("a thread that waits for another one moves while that computes or bytes flow") {
  const auto joins = [](duration cpu, std::uint64_t bytes = 0) {
    auto l = with(look(1, 1s), thread_look{helper, cpu, 7});
    l.threads[0].joins = true;
    l.cpu_time = 1s + cpu;
    l.io_bytes = bytes;
    return l;
  };
  CHECK(moves({joins(1s), joins(1100ms)}) == motion::moves);
  CHECK(moves({joins(1s), joins(1080ms)}) == motion::awaits); // or it keeps an eye on things
  CHECK(moves({joins(1s), joins(1005ms)}) == motion::sleeps);
  CHECK(moves({joins(1s), joins(1s, 1u << 20)}) == motion::moves);
}

TEST_CASE("a thread that waits for another one is where that one is, if it is a pool's") {
  const auto beside = [](thread_role role, awaited waits, bool joins, duration cpu = 1s) {
    auto l = with(look(1, 1s), thread_look{helper, cpu, 7});
    l.threads[0].joins = joins;
    l.threads[1].role = role;
    l.threads[1].waits = waits;
    return l;
  };
  const auto both = [&](thread_role role, awaited waits, bool joins) {
    return moves({beside(role, waits, joins), beside(role, waits, joins)});
  };
  for (const auto what : {awaited::outside, awaited::child}) {
    CHECK(both(thread_role::pool, what, true) == motion::works);
    // Which thread sets an event is not known.
    CHECK(both(thread_role::own, what, true) == motion::awaits);
    CHECK(both(thread_role::helper, what, true) == motion::sleeps);
    // A lock that the script takes itself.
    for (const auto role : {thread_role::pool, thread_role::own, thread_role::helper})
      CHECK(both(role, what, false) == motion::sleeps);
  }
  CHECK(both(thread_role::pool, awaited::lock, true) == motion::sleeps); // it has nothing to do
  // One that polls, and is met at work.
  CHECK(moves({beside(thread_role::pool, awaited::outside, true),
               beside(thread_role::pool, awaited::nothing, true)}) == motion::works);
  CHECK(moves({beside(thread_role::pool, awaited::nothing, true),
               beside(thread_role::pool, awaited::nothing, true, 1020ms)}) == motion::works);
  // While its data loader is waited for, other threads are not.
  auto loader = beside(thread_role::own, awaited::outside, true);
  loader.children.push_back(child(5, 1s));
  loader.children[0].role = "data loader worker 0";
  CHECK(moves({loader, loader}) == motion::sleeps);
}

TEST_CASE("a deadlock is a lock beside which nothing is at work") {
  const auto in_lock = [](bool joins, bool shared = false) {
    auto l = look(1, 1s);
    l.threads[0].joins = joins;
    l.threads[0].shared_lock = shared;
    return l;
  };
  const auto twice = [](const process_look& l) { return compared({l, l}); };
  CHECK(twice(in_lock(true)).deadlocked());
  CHECK(twice(in_lock(false)).locked());
  CHECK_FALSE(twice(in_lock(false)).deadlocked()); // native code may have the lock
  CHECK(twice(in_lock(true, true)).locked());
  CHECK_FALSE(twice(in_lock(true, true)).deadlocked()); // another process may
  for (const bool joins : {true, false}) {
    auto pauses = in_lock(joins);
    pauses.threads[0].timed_lock = true;
    CHECK(moves({pauses, pauses}) == (joins ? motion::awaits : motion::sleeps));
    CHECK_FALSE(twice(pauses).locked());
  }
  auto reads = in_lock(true);
  reads.threads[0].waits = awaited::kernel;
  CHECK_FALSE(twice(reads).locked());
  auto polls = with(in_lock(false), thread_look{helper, 1s, 7});
  CHECK(twice(polls).locked());
  polls.threads[1].waits = awaited::outside;
  CHECK_FALSE(twice(polls).locked());
  CHECK_FALSE(compared({with(in_lock(false), child(5, 1s)), with(in_lock(false), child(5, 1200ms))})
                  .locked());
  CHECK_FALSE(compared({in_lock(false), with(in_lock(false), child(5, 1s))}).locked());
}

TEST_CASE("a script that is over has ended once nothing of it goes on") {
  auto over = look(1, 1s);
  over.ends = true;
  CHECK_FALSE(compared({over}).ended());
  CHECK(compared({over, over}).ended());
  auto sends = over;
  sends.threads[0].joins = true;
  auto sent = sends;
  sent.io_bytes = 1u << 20;
  CHECK(compared({sends, sends}).ended());
  CHECK_FALSE(compared({sends, sent}).ended());
  auto computes = over;
  computes.threads[0].cpu_time = computes.cpu_time = 1200ms;
  CHECK_FALSE(compared({over, computes}).ended());
  CHECK_FALSE(compared({with(over, child(5, 1s)), with(over, child(6, 1200ms))}).ended());
}

TEST_CASE("a call that may take long is no standstill: in C, outside, or of a child") {
  auto from = look(1, 1s), to = look(1, 1200ms);
  to.threads[0].position = from.threads[0].position;
  CHECK(moves({from, to}) == motion::works);
  to.threads[0].runs_on = true; // a loop within one line, met twice in this look
  CHECK(moves({from, to}) == motion::spins);
  for (const auto what : {awaited::outside, awaited::child}) {
    auto asleep = look(1, 1s);
    asleep.threads[0].waits = what;
    asleep.threads[0].wanted = 1s;
    CHECK(moves({asleep, asleep}) == motion::works);
    auto polls = asleep;
    polls.threads[0].cpu_time = polls.threads[0].wanted = polls.cpu_time = 1020ms;
    CHECK(moves({asleep, polls}) == motion::works);
  }
  auto reads = look(1, 1s);
  reads.threads[0].waits = awaited::kernel;
  CHECK(moves({reads, reads}) == motion::sleeps);
  // Bytes that come while it waits for them.
  auto receives = look(1, 1s), received = look(1, 1s);
  receives.threads[0].waits = awaited::outside;
  received.io_bytes = 1u << 20;
  CHECK(moves({receives, received}) == motion::moves);
}

TEST_CASE("native threads work for one that waits in a lock") {
  auto from = look(1, 1s), to = look(1, 1s);
  to.cpu_time = 1100ms;
  CHECK(moves({from, to}) == motion::works);
  to.cpu_time = 1080ms;
  CHECK(moves({from, to}) == motion::sleeps);
}

TEST_CASE("a thread that has no processor is not blamed for it, and one that ends neither") {
  const auto that_wanted = [](duration cpu, duration wanted) {
    auto l = look(1, cpu);
    l.threads.front().wanted = wanted;
    l.delayed = wanted - cpu;
    return l;
  };
  const auto starved = compared({that_wanted(1s, 2s), that_wanted(1026ms, 2200ms)});
  CHECK(starved.moves() == motion::starves);
  CHECK(starved.lacks_a_core());
  // Two in five is enough to see a loop by.
  CHECK(moves({that_wanted(1s, 2s), that_wanted(1080ms, 2200ms)}) == motion::spins);
  CHECK(!compared({that_wanted(1s, 2s), that_wanted(1190ms, 2200ms)}).lacks_a_core());
  auto ends = look(1, 1200ms);
  ends.ends = true;
  CHECK(moves({look(1, 1s), ends}) == motion::ends);
  CHECK(moves({ends}) == motion::ends);
  ends.state = 'T';
  CHECK(moves({ends}) == motion::stopped);
}

TEST_CASE("a child that works moves its process") {
  const auto first = look(1, 1s), later = look(1, 1s);
  CHECK(moves({with(first, child(5, 1s)), with(later, child(5, 1s))}) == motion::sleeps);
  CHECK(moves({with(first, child(5, 1s)), with(later, child(6, 1200ms))}) == motion::moves);
  CHECK(moves({with(first, child(5, 1s)), with(later, child(6, 1s))}) == motion::sleeps);
  CHECK(moves({with(first, child(5, 1s)), with(later, child(5, 1200ms))}) == motion::sleeps);
  CHECK(moves({with(first, child(5, 1s)), with(later, child(5, 1s, 1u << 20))}) == motion::moves);
  CHECK(moves({first, with(later, child(5, 1s))}) == motion::moves); // it was born just now
  CHECK(moves({with(first, child(5, 1s)), later}) == motion::sleeps);
}

TEST_CASE("children count that a thread has started which decides") {
  const auto of = [](child_look c, std::int32_t thread) {
    c.started_by = thread;
    return c;
  };
  const auto quiet = with(look(1, 1s), thread_look{helper, 1s, 7});
  // A program that another thread starts again and again.
  CHECK(moves({quiet, with(quiet, of(child(5, 1s), helper))}) == motion::sleeps);
  CHECK(moves({quiet, with(quiet, of(child(5, 1s), pid))}) == motion::moves);
  CHECK(moves({with(quiet, of(child(5, 1s), helper)), with(quiet, of(child(6, 1200ms), helper))}) ==
        motion::sleeps);
  // The same as a worker of a pool, while the script waits for the pool.
  auto joins = quiet;
  joins.threads[0].joins = true;
  CHECK(moves({with(joins, of(child(5, 1s), helper)), with(joins, of(child(6, 1200ms), helper))}) ==
        motion::moves);
  CHECK(moves({joins, with(joins, of(child(5, 1s), helper))}) == motion::sleeps);
  // It is at work in one function all the time, or asleep in a call that may take long.
  const auto waits_for = [&](process_look l, duration cpu, awaited waits, thread_role role) {
    auto c = of(child(5, cpu), helper);
    c.threads[0].waits = waits;
    c.threads[0].role = role;
    return with(std::move(l), c);
  };
  for (const auto role : {thread_role::own, thread_role::pool}) {
    CHECK(moves({waits_for(joins, 1s, awaited::nothing, role),
                 waits_for(joins, 1200ms, awaited::nothing, role)}) == motion::works);
    CHECK(moves({waits_for(quiet, 1s, awaited::nothing, role),
                 waits_for(quiet, 1200ms, awaited::nothing, role)}) == motion::sleeps);
  }
  const auto naps = [&](thread_role role) {
    const auto l = waits_for(joins, 1s, awaited::outside, role);
    return moves({l, l});
  };
  CHECK(naps(thread_role::pool) == motion::works);
  CHECK(naps(thread_role::own) == motion::awaits); // or a server without requests
  CHECK(naps(thread_role::helper) == motion::sleeps);
  // A semaphore that processes share, and a pipe that is read.
  auto shares = quiet;
  shares.threads[0].shared_lock = true;
  CHECK(moves({with(shares, child(5, 1s)), with(shares, child(5, 1200ms))}) == motion::works);
  auto reads = quiet;
  reads.threads[0].waits = awaited::kernel;
  CHECK(moves({with(reads, child(5, 1s)), with(reads, child(5, 1200ms))}) == motion::works);
  CHECK(moves({with(reads, of(child(5, 1s), helper)), with(reads, of(child(5, 1200ms), helper))}) ==
        motion::sleeps);
  // A data loader's worker runs ahead beside a step that hangs.
  auto loader = child(5, 1s), later = child(6, 1200ms);
  loader.role = later.role = "data loader worker 0";
  auto in_step = quiet;
  in_step.waits_for_input = false;
  CHECK(moves({with(quiet, loader), with(quiet, later)}) == motion::moves);
  CHECK(moves({with(in_step, loader), with(in_step, later)}) == motion::sleeps);
}

TEST_CASE("another process with the same number begins anew") {
  auto other = look(2, 1200ms);
  other.started = 901;
  CHECK(moves({look(1, 1s), other}) == motion::unknown);
  CHECK(moves({look(1, 1s), other, other}) == motion::sleeps);
}

TEST_CASE("CPU time is of one core, from the first look to the last") {
  CHECK(compared({look(1, 1s), look(1, 1s), look(1, 1100ms)}).cpu_permille() == 250);
  CHECK(compared({look(1, 1s), look(1, 3s)}).cpu_permille() == 10'000);
  CHECK(compared({look(1, 3s), look(1, 1s)}).cpu_permille() == 0);
}

TEST_CASE("a loop wants all of a core, whatever it gets") {
  const auto that_wanted = [](duration cpu, duration wanted) {
    auto l = look(1, cpu);
    l.threads.front().wanted = wanted;
    return l;
  };
  CHECK(compared({look(1, 1s), look(1, 1160ms)}).wants_a_core());
  CHECK(!compared({look(1, 1s), look(1, 1150ms)}).wants_a_core());
  CHECK(compared({that_wanted(1s, 2s), that_wanted(1020ms, 2160ms)}).wants_a_core());
  CHECK(!compared({that_wanted(1s, 2s), that_wanted(1020ms, 2150ms)}).wants_a_core());
  // It got hardly anything of it, and does not sleep for that.
  CHECK(moves({that_wanted(1s, 2s), that_wanted(1s, 2200ms)}) == motion::starves);
  CHECK(moves({that_wanted(1s, 2s), that_wanted(1s, 2005ms)}) == motion::sleeps);
  // Not of two threads together: each waits for a lock that the other has.
  auto from = that_wanted(1s, 2s), to = that_wanted(1100ms, 2100ms);
  from.threads.push_back({helper, 1s, 9, 2s});
  to.threads.push_back({helper, 1s, 9, 2100ms});
  CHECK(!compared({from, to}).wants_a_core());
}

TEST_CASE("a thread that is ready in each look wants a core, whatever has been counted") {
  const auto ready = [](duration cpu, std::uint64_t stack = 1) {
    auto l = look(stack, cpu, 0, 'R');
    l.threads[0].ready = true;
    l.threads[0].wanted = cpu;
    l.threads[0].waits = awaited::nothing;
    l.ready = {{pid, cpu}};
    return l;
  };
  const auto asleep = [](duration cpu, awaited in = awaited::lock) {
    auto l = look(1, cpu);
    l.threads[0].wanted = cpu;
    l.threads[0].waits = in;
    return l;
  };
  // Its wait for a processor is not over, and so it is not counted.
  CHECK(moves({ready(1s), ready(1s), ready(1s)}) == motion::starves);
  CHECK(moves({asleep(1s), asleep(1s), ready(1s)}) == motion::starves); // woken just now
  // A host has taken a third of its virtual processor.
  CHECK(compared({ready(1s), ready(1130ms), ready(1260ms)}).wants_a_core());
  CHECK(moves({ready(1s), ready(1130ms), ready(1260ms)}) == motion::spins);
  CHECK(moves({ready(1s), ready(1130ms, 2), ready(1260ms)}) == motion::moves);
  // One that polls is met ready by chance.
  CHECK(!compared({ready(1s), asleep(1100ms), ready(1200ms)}).wants_a_core());
  CHECK(moves({asleep(1s, awaited::outside), asleep(1s), ready(1005ms)}) == motion::works);
  CHECK(moves({asleep(1s), asleep(1s), ready(1005ms)}) == motion::sleeps);
  CHECK(compared({asleep(1s), asleep(1s), ready(1005ms)}).locked());
}

TEST_CASE("a wait that is not over keeps others late, and a child at work") {
  const auto beside = [](std::map<std::int32_t, duration> threads) {
    auto l = look(1, 1s);
    l.ready = std::move(threads);
    return l;
  };
  CHECK(compared({beside({{7, 1s}}), beside({{7, 1s}}), beside({{7, 1s}})}).lacks_a_core());
  CHECK(!compared({beside({{7, 1s}}), beside({}), beside({{7, 1s}})}).lacks_a_core());
  CHECK(!compared({beside({{7, 1s}}), beside({{8, 1s}})}).lacks_a_core());
  CHECK(!compared({beside({{7, 1s}}), beside({{7, 1200ms}})}).lacks_a_core()); // it has one
  const auto with_child = [](bool ready) {
    auto c = child(1, 0s);
    c.threads.clear();
    if (ready)
      c.ready = {{50, 0s}};
    return with(look(1, 1s), c);
  };
  CHECK(moves({with_child(true), with_child(true), with_child(true)}) == motion::moves);
  CHECK(moves({with_child(true), with_child(false), with_child(true)}) == motion::sleeps);
  // Nothing of Python can be read of it.
  auto native = look(1, 1s, 0, 'R');
  native.threads.clear();
  native.ready = {{pid, 1s}};
  CHECK(moves({native, native, native}) == motion::starves);
}

TEST_CASE("a child without Python moves when it computes, such as a compiler") {
  const auto beside = [](duration cpu, duration wanted = {}) {
    child_look c;
    c.pid = 50;
    c.cpu_time = cpu;
    c.wanted = wanted;
    return with(look(1, 1s), c);
  };
  CHECK(moves({beside(0s), beside(100ms)}) == motion::moves);
  CHECK(moves({beside(0s), beside(20ms, 110ms)}) == motion::moves); // others have the cores
  CHECK(moves({beside(0s), beside(90ms, 95ms)}) == motion::sleeps); // one that reads gauges
}

TEST_CASE("which kinds stand") {
  for (const auto m : {motion::sleeps, motion::spins, motion::stopped, motion::awaits})
    CHECK(stands(m));
  for (const auto m :
       {motion::moves, motion::unknown, motion::works, motion::starves, motion::ends})
    CHECK(!stands(m));
}
