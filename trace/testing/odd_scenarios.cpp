#include "trace/testing/scenarios.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Scenarios in which something is not as it should be, or is much.

// Of a sanitizer's runtime: absent from other builds.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace troupe::trace::testing {

namespace {

std::string directory() {
  const char* told = std::getenv("TROUPE_TRACE_DIR");
  return told ? told : ".";
}

bool there(const std::string& name) {
  return access((directory() + "/" + name).c_str(), F_OK) == 0;
}

/// What the process holds. A sanitizer's own pages grow with what is touched, so that its
/// allocator is asked there instead.
long held_kib() {
  if (__sanitizer_get_current_allocated_bytes)
    return static_cast<long>(__sanitizer_get_current_allocated_bytes() / 1024);
  long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    long size = 0;
    if (std::fscanf(file, "%ld %ld", &size, &pages) != 2)
      pages = 0;
    std::fclose(file);
  }
  return pages * 4;
}

} // namespace

void capture() {
  begin();
  const auto of = communicator(8);
  fake_capture(stream(1), true);
  for (int n = 0; n < 10; ++n) {
    all_reduce(of, stream(1), 1024, 1000);
    launch(stream(1), 1000);
  }
  ncclGroupStart();
  all_reduce(of, stream(1), 1024, 1000);
  ncclGroupEnd();
  all_reduce(of, stream(2), 1024, 1000); // another stream goes on
  fake_capture(stream(1), false);
  fake_advance(1'000'000);
  settle(1);
  const auto counts = fake_counted();
  std::printf("{\"records_in_capture\": %lu, \"strict_threads\": %lu, \"wrong_context\": %lu}\n",
              counts.records_in_capture, counts.strict_threads, counts.wrong_context);
}

void errors() {
  begin();
  const auto of = communicator(8);
  fake_next_result(9);
  const int launched = cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, stream(1));
  const int peeked = cudaPeekAtLastError(), got = cudaGetLastError(), again = cudaGetLastError();
  fake_next_result(3);
  const int reduced = ncclAllReduce(nullptr, nullptr, 16, 7, 0, of, stream(1));
  ncclGroupStart();
  ncclAllReduce(nullptr, nullptr, 16, 7, 0, of, stream(1));
  fake_next_result(5);
  const int grouped = ncclGroupEnd();
  fake_next_result(7); // in progress
  const int background = ncclAllReduce(nullptr, nullptr, 16, 7, 0, of, stream(1));
  // Events of the tracing library fail: the program sees nothing of it.
  fake_fail_records(1);
  const int first = ncclAllReduce(nullptr, nullptr, 16, 7, 0, of, stream(1));
  fake_fail_records(0);
  const int after = cudaGetLastError();
  fake_advance(1'000'000);
  std::printf("{\"launched\": %d, \"peeked\": %d, \"got\": %d, \"again\": %d, \"reduced\": %d, "
              "\"grouped\": %d, \"background\": %d, \"first\": %d, \"after\": %d}\n",
              launched, peeked, got, again, reduced, grouped, background, first, after);
}

void pool() {
  begin();
  // Far ahead of a device that stands still.
  for (int n = 0; n < 20'000; ++n)
    launch(stream(1), 1000);
  until("the pool is as large as it gets", [] {
    launch(stream(1), 1000);
    return fake_counted().events_made >= 2 * 4096;
  });
  for (int n = 0; n < 20'000; ++n)
    launch(stream(1), 1000);
  fake_advance(1'000'000'000);
  settle(4096 - 1); // one pair is the anchor of the time axis
  std::printf("{\"launches\": %lu, \"events\": %lu}\n", fake_counted().launches,
              fake_counted().events_made);
}

void threads() {
  begin();
  constexpr int each = 20'000, of_threads = 8;
  const auto before = fake_counted().launches;
  std::vector<std::thread> all;
  std::atomic<int> running{of_threads};
  for (int t = 0; t < of_threads; ++t)
    all.emplace_back([t, &running] {
      cudaSetDevice(t % 4);
      const auto of = communicator(8, static_cast<char>(t + 1));
      const auto in = stream(static_cast<std::uintptr_t>(t) + 1);
      for (int n = 0; n < each / 2; ++n) {
        launch(in, 1000);
        all_reduce(of, in, 1024, 1000);
        if (n % 64 == 0)
          fake_advance(100'000);
      }
      ncclCommDestroy(of);
      --running;
    });
  for (auto& one : all)
    one.join();
  fake_advance(1'000'000'000);
  std::printf("{\"launches\": %lu, \"wrong_context\": %lu}\n", fake_counted().launches - before,
              fake_counted().wrong_context);
}

void million() {
  begin();
  long before = 0;
  for (int n = 0; n < 1'000'000; ++n) {
    launch(stream(static_cast<std::uintptr_t>(n) % 100 + 1), 1000);
    if (n % 16 == 0)
      fake_advance(100'000);
    if (n == 100'000)
      before = held_kib();
  }
  std::printf("{\"grown_kib\": %ld}\n", held_kib() - before);
}

void hang() {
  begin();
  const auto of = communicator(8);
  all_reduce(of, stream(1), 1024, 1'000'000);
  fake_hang(stream(1), true);
  all_reduce(of, stream(1), 1024, 1'000'000);
  launch(stream(2), 1000); // others go on
  fake_advance(1'000'000'000);
  const char* rank = "00003-00008.hang.json";
  until("a timeline of the hang is there", [rank] { return there(rank); });
  until("the metrics tell of it", [] { return there("seen"); });
  fake_hang(stream(1), false);
  settle(3);
  until("the metrics tell of its end", [] { return there("seen-again"); });
  // Behind something that is not timed.
  fake_hang(stream(2), true);
  fake_launch(stream(2));
  launch(stream(2), 1000);
  until("the second hang is told", [] { return there("done"); });
}

void request() {
  begin();
  const auto of = communicator(8);
  for (int n = 0; n < 20; ++n) {
    all_reduce(of, stream(1), 262'144, 1'000'000);
    launch(stream(2), 300'000);
  }
  // On a clock that goes as the real one does, as the timeline is laid beside that.
  auto before = std::chrono::steady_clock::now();
  const auto goal = fake_counted().ended + 40;
  until("all calls are over", [&] {
    const auto now = std::chrono::steady_clock::now();
    fake_advance(static_cast<std::uint64_t>((now - before).count()));
    before = now;
    return fake_counted().ended >= goal;
  });
  // A query that is answered is not yet a call that is kept: the next query comes after that.
  const auto queries = fake_counted().queries;
  all_reduce(of, stream(1), 1024, 1'000'000); // under way
  until("the last call is kept", [&] { return fake_counted().queries > queries; });
  close(open((directory() + "/timeline.request").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  until("the timeline is there", [] { return there("00003-00008.timeline.json"); });
}

void forked() {
  begin();
  const auto of = communicator(8);
  const auto records = fake_counted().records;
  const pid_t child = fork();
  if (child == 0) {
    for (int n = 0; n < 1000; ++n)
      all_reduce(of, stream(1), 1024, 1000);
    const auto counts = fake_counted();
    std::exit(counts.collectives == 1000 && counts.records == records ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  for (int n = 0; n < 10; ++n)
    all_reduce(of, stream(1), 1024, 1000);
  fake_advance(1'000'000);
  settle(10);
  std::printf("{\"child\": %d}\n", status);
}

void stuck() {
  begin();
  fake_block_queries();
  launch(stream(1), 1000);
}

void untraced() {
  cudaSetDevice(0);
  const auto of = communicator(8);
  for (int n = 0; n < 1000; ++n)
    all_reduce(of, stream(1), 1024, 1000);
  ncclCommDestroy(of);
  int threads = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/task"))
    threads += one.exists() ? 1 : 0;
  std::printf("{\"threads\": %d, \"events\": %lu}\n", threads, fake_counted().events_made);
}

void served() {
  begin();
  until("the test is done", [] { return there("done"); });
}

} // namespace troupe::trace::testing
