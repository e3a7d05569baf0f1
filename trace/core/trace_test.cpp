#include "trace/core/buckets.hpp"
#include "trace/core/communicators.hpp"
#include "trace/core/index_queue.hpp"
#include "trace/core/metrics.hpp"
#include "trace/core/settings.hpp"
#include "trace/core/stream_queues.hpp"
#include "trace/core/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe::trace;
using troupe::diag::collective;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

operation all_reduce(std::uint64_t bytes, std::uint32_t members = 8) {
  operation one;
  one.what = operation_class::collective;
  one.kind = static_cast<std::uint8_t>(collective::all_reduce);
  one.type = element::float32;
  one.members = members;
  one.bytes = bytes;
  return one;
}

/// All zero, as the library's own are.
template<class T>
std::unique_ptr<T> zeroed() {
  return std::make_unique<T>();
}

std::map<std::string, std::string> environment;
const char* value_of(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

} // namespace

TEST_CASE("bus bandwidth is nccl-tests'") {
  CHECK(bus_factor(collective::all_reduce, 8) == doctest::Approx(1.75));
  CHECK(bus_factor(collective::all_gather, 4) == doctest::Approx(0.75));
  CHECK(bus_factor(collective::reduce_scatter, 2) == doctest::Approx(0.5));
  CHECK(bus_factor(collective::broadcast, 8) == 1);
  CHECK(bus_factor(collective::all_reduce, 0) == 1); // unknown
  CHECK(collective_bytes(collective::all_gather, 100, element::bfloat16, 8) == 1600);
  CHECK(collective_bytes(collective::all_reduce, 100, element::float64, 8) == 800);
}

TEST_CASE("levels of sizes and of work have no gaps") {
  CHECK(size_level(0) == 0);
  CHECK(size_level(1024) == 0);
  CHECK(size_level(1025) == 1);
  for (std::uint32_t level = 0; level + 1 < size_levels; ++level) {
    CHECK(size_level(size_level_max(level)) == level);
    CHECK(size_level(size_level_max(level) + 1) == level + 1);
  }
  CHECK(size_level(~std::uint64_t{0}) == size_levels - 1);
  CHECK(size_level_max(size_levels - 1) == 0);
  for (std::uint32_t level = 0; level + 1 < flop_levels; ++level) {
    CHECK(flop_level(flop_level_max(level)) == level);
    CHECK(flop_level(flop_level_max(level) + 1) == level + 1);
  }
}

TEST_CASE("durations fall into buckets that are a quarter of a doubling wide at most") {
  for (std::uint64_t ns = 1; ns < 30 * second; ns += ns / 7 + 1) {
    const auto at = duration_counts::bucket_of(ns);
    CAPTURE(ns);
    CHECK(ns <= duration_counts::bucket_max_ns(at));
    if (at > 0)
      CHECK(ns >= duration_counts::bucket_max_ns(at - 1));
  }
  CHECK(duration_counts::bucket_of(~std::uint64_t{0} / 8) == duration_counts::buckets - 1);
}

TEST_CASE("a bucket measures after its warm-up") {
  const auto all = zeroed<buckets>();
  for (std::uint32_t n = 0; n < limits::warm_up; ++n)
    all->add(all_reduce(1000), 5 * second, second);
  CHECK(all->at(0).timed == 0);
  CHECK(all->at(0).of_windows().timed == 0);
  for (int n = 0; n < 99; ++n)
    all->add(all_reduce(1000), 1'000'000, second);
  all->add(all_reduce(1000), 50'000'000, second);
  const auto recent = all->at(0).of_windows();
  CHECK(recent.timed == 100);
  CHECK(recent.min_ns == 1'000'000);
  CHECK(recent.max_ns == 50'000'000);
  // One of a hundred may be longer than p99.
  CHECK(recent.p99_ns >= 1'000'000);
  CHECK(recent.p99_ns <= 1'250'000);
  CHECK(recent.work_per_second == doctest::Approx(100 * 1000 * 1.75 / 0.149));
}

TEST_CASE("what was measured minutes ago fades from the recent, and stays in the totals") {
  const auto all = zeroed<buckets>();
  for (std::uint32_t n = 0; n < limits::warm_up + 10; ++n)
    all->add(all_reduce(1000), second, second);
  all->turn(second + limits::window_ns - 1);
  CHECK(all->at(0).of_windows().timed == 10);
  all->turn(second + limits::window_ns);
  CHECK(all->at(0).of_windows().timed == 10); // the window before
  all->turn(second + 2 * limits::window_ns);
  CHECK(all->at(0).of_windows().timed == 0);
  CHECK(all->at(0).timed == 10);
  CHECK(all->at(0).sum_ns == 10 * second);
}

TEST_CASE("sets of labels are bounded") {
  const auto all = zeroed<buckets>();
  for (std::uint32_t members = 1; members <= limits::buckets_max + 10; ++members)
    all->add(all_reduce(1, members), 1000, second);
  CHECK(all->size() == limits::buckets_max);
  CHECK(all->without_place() == 10);
}

TEST_CASE("a queue of numbers keeps their order, and what it holds") {
  index_queue<4> queue{};
  std::uint32_t value = 0;
  CHECK_FALSE(queue.pop(value));
  for (std::uint32_t round = 0; round < 10; ++round) {
    for (std::uint32_t n = 0; n < 4; ++n)
      CHECK(queue.push(round * 4 + n));
    CHECK_FALSE(queue.push(99));
    CHECK(queue.size() == 4);
    for (std::uint32_t n = 0; n < 4; ++n) {
      REQUIRE(queue.pop(value));
      CHECK(value == round * 4 + n);
    }
    CHECK_FALSE(queue.pop(value));
  }
}

TEST_CASE("a queue of numbers loses none between threads") {
  index_queue<64> queue{};
  constexpr std::uint32_t each = 20'000, threads = 3;
  std::vector<std::atomic<int>> seen(each * threads);
  std::atomic<std::uint32_t> popped{0};
  std::vector<std::thread> all;
  for (std::uint32_t t = 0; t < threads; ++t) {
    all.emplace_back([&queue, t] {
      for (std::uint32_t n = 0; n < each; ++n)
        while (!queue.push(t * each + n))
          std::this_thread::yield();
    });
    all.emplace_back([&] {
      std::uint32_t value = 0;
      while (popped.load() < each * threads) {
        if (!queue.pop(value)) {
          std::this_thread::yield();
          continue;
        }
        ++seen[value];
        ++popped;
      }
    });
  }
  for (auto& one : all)
    one.join();
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; }));
}

TEST_CASE("a stream waits since its oldest call is the oldest") {
  const auto queues = zeroed<stream_queues>();
  int a = 0, b = 0;
  CHECK(queues->longest_wait_ns(100) == 0);
  const auto first = queues->add(7, &a, &a, 100);
  CHECK(queues->add(8, &a, &a, 110) == first);
  const auto second_stream = queues->add(9, &a, &b, 120);
  CHECK(second_stream != first);
  CHECK(queues->longest_wait_ns(150) == 50);
  CHECK(queues->longest_waited_for() == 7);
  queues->remove_oldest(first, 140);
  CHECK(queues->at(first).oldest == 8);
  CHECK(queues->longest_wait_ns(150) == 30); // of the other
  CHECK(queues->longest_waited_for() == 9);
  queues->remove_oldest(second_stream, 145);
  CHECK(queues->longest_wait_ns(150) == 10);
  queues->remove_oldest(first, 150);
  CHECK(queues->calls() == 0);
}

TEST_CASE("more streams than are told apart share a queue, and none is lost") {
  const auto queues = zeroed<stream_queues>();
  std::vector<char> handles(3 * limits::streams_max);
  for (std::uint32_t n = 0; n < handles.size(); ++n)
    queues->add(n, nullptr, &handles[n], 1);
  CHECK(queues->streams() == limits::streams_max);
  std::vector<std::uint32_t> seen;
  for (std::size_t at = 0; at < queues->streams(); ++at)
    while (queues->at(at).calls > 0) {
      seen.push_back(queues->at(at).oldest);
      queues->remove_oldest(at, 2);
    }
  std::sort(seen.begin(), seen.end());
  CHECK(seen.size() == handles.size());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  // Places without calls are free again.
  char other = 0;
  CHECK(queues->add(1, nullptr, &other, 3) < limits::streams_max);
}

TEST_CASE("a hang is told once, and again when it comes again") {
  hang_rule rule(300);
  CHECK_FALSE(rule.look(300));
  CHECK(rule.look(301));
  CHECK_FALSE(rule.look(400));
  CHECK(rule.hung());
  CHECK_FALSE(rule.look(0));
  CHECK_FALSE(rule.hung());
  CHECK(rule.look(500));
  CHECK(rule.hangs() == 2);
}

TEST_CASE("communicators are found by handle, also after others went") {
  const auto all = zeroed<communicators>();
  std::vector<char> handles(limits::communicators_max + 1);
  for (std::size_t n = 0; n < limits::communicators_max; ++n)
    CHECK(all->add(&handles[n], n + 1, 8, 0) != communicators::none);
  CHECK(all->add(&handles.back(), 1, 8, 0) == communicators::none);
  for (std::size_t n = 0; n < limits::communicators_max; n += 2)
    all->remove(&handles[n]);
  for (std::size_t n = 0; n < limits::communicators_max; ++n)
    CHECK((all->find(&handles[n]) == communicators::none) == (n % 2 == 0));
  CHECK(all->add(&handles.back(), 5, 2, 1) != communicators::none);
  CHECK(all->at(all->find(&handles.back())).name == 5);
}

TEST_CASE("names of communicators are the same at all members and differ otherwise") {
  const char id[128] = {1, 2, 3};
  const auto parent = name_of_id(id, sizeof id);
  CHECK(parent == name_of_id(id, sizeof id));
  CHECK(name_of_part(parent, 0, 1) == name_of_part(parent, 0, 1));
  CHECK(name_of_part(parent, 0, 1) != name_of_part(parent, 1, 1));
  CHECK(name_of_part(parent, 0, 1) != name_of_part(parent, 0, 2));
}

TEST_CASE("a device's axis keeps distances, and its offset keeps what was seen") {
  device_axis axis;
  const auto first = axis.place(0, 100, 10'000); // seen late, by at most 9900
  CHECK(first == 9'900);
  CHECK(axis.place(1'000, 100, 10'500) == 10'900); // ended at 11000 at the latest
  CHECK(axis.offset_ns() == -500);
  CHECK(axis.place(2'000, 100, 13'000) == 11'900);
  CHECK(axis.offset_ns() == -500); // seen late says nothing
  axis.move_anchor();
  CHECK(axis.place(50, 10, 13'100) == 11'950);
  // A second later, what was seen quickly then counts less: 100 us of it.
  axis.place(1'000'000'000, 10, 1'001'000'000);
  CHECK(axis.offset_ns() == doctest::Approx(100'000).epsilon(0.02));
}

TEST_CASE("what does not fit into a text is left out, and the end has its place") {
  char memory[16];
  text into(memory, sizeof memory, 4);
  into.add("%s", "12345");
  into.add(std::string_view("123456789"));
  CHECK(into.full());
  CHECK(into.written() == "12345");
  into.add("6");
  CHECK(into.written() == "12345");
  into.end_with("]}\n");
  CHECK(into.written() == "12345]}\n");
  char more[64];
  text escaped(more, sizeof more);
  escaped.add_escaped("a\"b\\c\nd\te");
  CHECK(escaped.written() == "a\\\"b\\\\c\\nd?e");
}

TEST_CASE("a timeline that does not fit is whole as JSON") {
  std::vector<timeline_event> events(100);
  for (auto& event : events)
    event.what = all_reduce(1024);
  std::vector<char> memory(4096);
  text into(memory.data(), memory.size(), 8);
  CHECK_FALSE(
      render_timeline(into, events.data(), events.size(), {}, "test", [](text&, const void*) {}));
  const auto written = into.written();
  CHECK(written.substr(written.size() - 6) == "}}\n]}\n");
  CHECK(std::count(written.begin(), written.end(), '{') ==
        std::count(written.begin(), written.end(), '}'));
}

TEST_CASE("metrics that do not fit are whole lines") {
  const auto all = zeroed<buckets>();
  for (std::uint32_t members = 1; members <= 100; ++members)
    for (std::uint32_t n = 0; n <= limits::warm_up; ++n)
      all->add(all_reduce(1, members), 1000, second);
  std::vector<char> memory(16384);
  text into(memory.data(), memory.size(), 64);
  CHECK_FALSE(render_metrics(into, *all, {}, {}));
  CHECK(into.written().back() == '\n');
  CHECK(into.written().find("troupe_trace_hang{") != std::string_view::npos);
}

TEST_CASE("settings: defaults, xpu_timer's names, and values of no use") {
  environment = {};
  settings_notes notes;
  auto told = read_settings(value_of, notes);
  CHECK(notes.count == 0);
  CHECK(told.hang_timeout_ns == 300 * second);
  CHECK(told.timeline_count == 1000);
  CHECK(told.port == 0);

  environment = {{"RANK", "5"},
                 {"LOCAL_RANK", "1"},
                 {"XPU_TIMER_HANG_TIMEOUT", "2.5"},
                 {"XPU_TIMER_TIMELINE_PATH", "/t"},
                 {"TROUPE_TRACE_DIR", "/d"},
                 {"TROUPE_TRACE_PORT", "18889"},
                 {"TROUPE_TRACE_POLL_US", "1000"},
                 {"XPU_TIMER_TIMELINE_TRACE_COUNT", "1000000"},
                 {"TROUPE_TRACE", "maybe"}};
  told = read_settings(value_of, notes);
  CHECK(told.rank == 5);
  CHECK(told.hang_timeout_ns == 5 * second / 2);
  CHECK(told.timeline_directory.view() == "/t");
  CHECK(told.metrics_directory.view() == "/d");
  CHECK(told.port == 18890);
  CHECK(told.poll_every_ns == 1'000'000);
  CHECK(told.timeline_count == 1000);
  CHECK(told.on);
  CHECK(notes.count == 2);
}
