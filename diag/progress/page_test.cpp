#include "diag/progress/page_view.hpp"
#include "diag/progress/page_writer.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>

using namespace troupe::diag;

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// A page as the node supervisor makes it, and its writer.
struct worker {
  std::unique_ptr<progress_page> page = std::make_unique<progress_page>();
  page_writer writer{*page};
  std::uint64_t now = 1000 * ms;

  worker() { writer.take(42, now); }
  page_view seen() const {
    auto view = read_page(*page, now);
    REQUIRE(view);
    return *view;
  }
  void after(std::uint64_t ns) { now += ns; }
};

const phase_view& of(const page_view& seen, phase which) {
  return seen.each_phase[static_cast<std::size_t>(which)];
}

} // namespace

TEST_CASE("a page that no process has taken says nothing") {
  const auto page = std::make_unique<progress_page>();
  CHECK_FALSE(read_page(*page, 1));
}

TEST_CASE("buckets are less than a fifth wide, in order, and the last takes the rest") {
  CHECK(bucket_of(0) == 0);
  CHECK(bucket_of(16'384) == 0);
  CHECK(bucket_of(32'768) == 4);
  CHECK(bucket_of(~std::uint64_t{0}) == duration_histogram::buckets - 1);
  for (std::size_t i = 0; i + 1 < duration_histogram::buckets; ++i) {
    CAPTURE(i);
    CHECK(bucket_of(end_of_bucket(i)) == i + 1);
    CHECK(bucket_of(end_of_bucket(i) - 1) == i);
    CHECK(static_cast<double>(end_of_bucket(i + 1)) < 1.2 * static_cast<double>(end_of_bucket(i)));
  }
}

TEST_CASE("a quantile is at most a fifth too long") {
  duration_counts counts;
  CHECK(quantile(counts, 0.99) == 0);
  duration_histogram words{};
  for (int i = 0; i < 98; ++i)
    add(words, 10 * ms);
  add(words, 500 * ms);
  add(words, 500 * ms);
  counts = read(words);
  CHECK(counts.total == 100);
  CHECK(quantile(counts, 0.5) >= 10 * ms);
  CHECK(quantile(counts, 0.5) <= 12 * ms);
  CHECK(quantile(counts, 0.99) >= 500 * ms);
  CHECK(quantile(counts, 0.99) <= 600 * ms);
}

TEST_CASE("what was usual long ago fades") {
  duration_histogram words{};
  for (std::uint32_t i = 0; i < 20 * duration_histogram::fades_at; ++i)
    add(words, 10 * ms);
  CHECK(read(words).total <= duration_histogram::fades_at);
  for (std::uint32_t i = 0; i < 10 * duration_histogram::fades_at; ++i)
    add(words, 100 * ms);
  CHECK(quantile(read(words), 0.02) >= 100 * ms);
}

TEST_CASE("steps have a number, a time, and how long they took") {
  worker w;
  w.writer.step(w.now);
  w.after(10 * ms);
  w.writer.step(w.now);
  w.after(30 * ms);
  w.writer.step(70, w.now);
  const auto seen = w.seen();
  CHECK(seen.step == 70);
  CHECK(seen.steps_made == 3);
  CHECK(seen.step_ns == w.now);
  CHECK(seen.step_longest_ns == 30 * ms);
  CHECK(seen.step_durations.total == 2);
  CHECK(seen.newest_ns() == w.now);
}

TEST_CASE("a process that takes the page of one that ended begins anew") {
  worker w;
  w.writer.feeds(feed::input);
  w.writer.enter(phase::user, "sampling", w.now);
  w.writer.entered(w.writer.communicator("0", 2, 7), collective::barrier, 0, w.now);
  for (int i = 0; i < 3; ++i) {
    w.after(10 * ms);
    w.writer.step(w.now);
  }
  page_writer next(*w.page);
  w.after(60'000 * ms);
  next.take(43, w.now);
  w.after(1 * ms);
  next.step(w.now);
  const auto seen = w.seen();
  CHECK(seen.pid == 43);
  CHECK(seen.steps_made == 1);
  CHECK(seen.step_longest_ns == 0);
  CHECK(seen.step_durations.total == 0);
  CHECK(seen.feeds == 0);
  CHECK(seen.phase_now == phase::other);
  CHECK(seen.user_phase.empty());
  CHECK(of(seen, phase::user).entered == 0);
  CHECK(seen.communicators.empty());
}

TEST_CASE("a phase lasts from its entry, and the one around it goes on after it") {
  worker w;
  w.after(1 * ms);
  w.writer.enter(phase::evaluation, {}, w.now);
  w.after(5 * ms);
  w.writer.enter(phase::user, "sampling", w.now);
  CHECK(w.seen().phase_now == phase::user);
  CHECK(w.seen().user_phase == "sampling");
  w.after(2 * ms);
  w.writer.leave(phase::user, w.now);
  CHECK(w.seen().phase_now == phase::evaluation);
  CHECK(w.seen().phase_ns == w.now);
  w.after(4 * ms);
  w.writer.leave(phase::evaluation, w.now);
  const auto seen = w.seen();
  CHECK(seen.phase_now == phase::other);
  CHECK(of(seen, phase::user).longest_ns == 2 * ms);
  CHECK(of(seen, phase::evaluation).entered == 2);
  CHECK(of(seen, phase::evaluation).longest_ns == 5 * ms);
  CHECK(of(seen, phase::evaluation).durations.total == 2);
}

TEST_CASE("a phase can be left while another lies in it") {
  worker w;
  w.writer.enter(phase::evaluation, {}, w.now);
  w.writer.enter(phase::backward, {}, w.now);
  const auto since = w.now;
  w.after(1 * ms);
  w.writer.leave(phase::evaluation, w.now);
  CHECK(w.seen().phase_now == phase::backward);
  CHECK(w.seen().phase_ns == since);
  w.writer.leave(phase::backward, w.now);
  CHECK(w.seen().phase_now == phase::other);
  w.writer.leave(phase::input, w.now);
  CHECK(w.seen().phase_now == phase::other);
}

TEST_CASE("phases deeper than there is room are the one around them") {
  worker w;
  for (std::size_t i = 0; i < page_writer::depth_max; ++i)
    w.writer.enter(phase::forward, {}, w.now);
  w.writer.enter(phase::input, {}, w.now);
  CHECK(w.seen().phase_now == phase::forward);
  w.writer.leave(phase::input, w.now);
  for (std::size_t i = 0; i < page_writer::depth_max; ++i) {
    CHECK(w.seen().phase_now == phase::forward);
    w.writer.leave(phase::forward, w.now);
  }
  CHECK(w.seen().phase_now == phase::other);
}

TEST_CASE("a communicator keeps its row, and a page has no more rows than it has") {
  worker w;
  const auto first = w.writer.communicator("tp0", 4, 7);
  CHECK(w.writer.communicator("tp0", 4, 7) == first);
  w.writer.rename(first, "tp1", 2, 8);
  REQUIRE(w.seen().communicators.size() == 1);
  CHECK(w.seen().communicators[0].name == "tp1");
  CHECK(w.seen().communicators[0].members == 2);
  for (int i = 0; i < 100; ++i)
    w.writer.communicator("group " + std::to_string(i), 0, 0);
  CHECK(w.seen().communicators.size() == progress_page::communicators_max);
  const auto none = w.writer.communicator("one more", 0, 0);
  CHECK(none == page_writer::no_row);
  w.writer.entered(none, collective::barrier, 0, w.now);
  w.writer.left(none, w.now);
}

TEST_CASE("no more collectives are left than were entered, and the time in them is summed up") {
  worker w;
  const auto row = w.writer.communicator("0", 2, 0);
  w.writer.left(row, w.now);
  w.writer.entered(row, collective::all_reduce, 1024, w.now);
  w.after(3 * ms);
  w.writer.entered(row, collective::broadcast, 0, w.now);
  w.writer.left(row, w.now);
  w.after(4 * ms);
  auto seen = w.seen().communicators[0];
  CHECK(seen.entered == 2);
  CHECK(seen.left == 1);
  CHECK(seen.kind == collective::broadcast);
  w.writer.left(row, w.now);
  w.writer.left(row, w.now);
  seen = w.seen().communicators[0];
  CHECK(seen.left == 2);
  CHECK(seen.waited_ns == 7 * ms);
}

TEST_CASE("several threads enter collectives of one communicator") {
  worker w;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto row = w.writer.communicator("0", 2, 0);
      for (int i = 0; i < 10'000; ++i) {
        w.writer.entered(row, collective::all_reduce, 0, w.now);
        w.writer.left(row, w.now);
      }
    });
  for (auto& each : threads)
    each.join();
  const auto seen = w.seen();
  std::uint64_t entered = 0, left = 0;
  for (const auto& each : seen.communicators) {
    entered += each.entered;
    left += each.left;
  }
  CHECK(entered == 40'000);
  CHECK(left == 40'000);
}

TEST_CASE("a quantile by time is the long one among many short ones") {
  duration_counts counts;
  CHECK(quantile_by_time(counts, 0.9) == 0);
  counts.counts[bucket_of(1 * ms)] = 1'000;
  counts.counts[bucket_of(10'000 * ms)] = 1;
  counts.total = 1'001;
  CHECK(quantile(counts, 0.99) == end_of_bucket(bucket_of(1 * ms)));
  CHECK(quantile_by_time(counts, 0.9) == end_of_bucket(bucket_of(10'000 * ms)));
  CHECK(quantile_by_time(counts, 0.05) == end_of_bucket(bucket_of(1 * ms)));
}

TEST_CASE("whatever is noted ends a silence, and a page begins without one") {
  worker w;
  const auto group = w.writer.communicator("0", 2, 0);
  CHECK(w.seen().silences.total == 0);
  std::uint64_t silences = 0;
  const auto notes = [&](auto what) {
    w.after(5 * ms);
    what();
    silences += 1;
    CHECK(w.seen().silences.total == silences - 1);
    CHECK(quantile(w.seen().silences, 1) == (silences > 1 ? end_of_bucket(bucket_of(5 * ms)) : 0));
  };
  notes([&] { w.writer.entered(group, collective::all_reduce, 0, w.now); });
  notes([&] { w.writer.left(group, w.now); });
  notes([&] { w.writer.entered_only(group, collective::all_reduce, w.now); });
  notes([&] { w.writer.enter(phase::forward, {}, w.now); });
  notes([&] { w.writer.leave(phase::forward, w.now); });
  notes([&] { w.writer.step(w.now); });
  notes([&] { w.writer.touch(w.now); });
  w.writer.script_thread(4711);
  CHECK(w.seen().script_thread == 4711);
  w.writer.take(43, w.now);
  CHECK(w.seen().silences.total == 0);
  CHECK(w.seen().script_thread == 0);
}

TEST_CASE("whatever is written into a page, what is read of it is bounded") {
  std::mt19937_64 random(17);
  for (int round = 0; round < 200; ++round) {
    const auto page = std::make_unique<progress_page>();
    auto* bytes = reinterpret_cast<unsigned char*>(page.get());
    for (std::size_t i = 0; i < sizeof(progress_page); ++i)
      bytes[i] = static_cast<unsigned char>(random());
    page->magic.store(progress_page::magic_now);
    const std::uint64_t now = 123'456'789;
    const auto seen = read_page(*page, now);
    REQUIRE(seen);
    CHECK(seen->newest_ns() <= now);
    CHECK(static_cast<std::size_t>(seen->phase_now) < phases);
    CHECK(seen->user_phase.size() < progress_page::user_phase_bytes);
    CHECK(seen->communicators.size() <= progress_page::communicators_max);
    CHECK(seen->step_durations.total <= duration_histogram::buckets * duration_histogram::fades_at);
    CHECK(seen->silences.total <= duration_histogram::buckets * duration_histogram::fades_at);
    CHECK(seen->script_thread <= 1u << 22);
    CHECK(seen->feeds < 128);
    for (const auto& each : seen->communicators) {
      CHECK(each.left <= each.entered);
      CHECK(each.waited_ns <= now);
      CHECK(each.kind <= collective::other);
      CHECK(each.name.find_first_not_of(
                " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                "abcdefghijklmnopqrstuvwxyz{|}~") == std::string::npos);
    }
  }
}
