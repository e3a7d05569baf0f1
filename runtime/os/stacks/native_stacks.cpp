#include "runtime/os/stacks/native_stacks.hpp"

#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace troupe::os {

namespace {

using clock = std::chrono::steady_clock;

class reading {
 public:
  reading(pid_t pid, unwinder& by)
      : pid_(pid), by_(by), end_([this](std::uint64_t sp) { return by_.stack_end(sp); }) {}

  native_stacks of(const std::vector<pid_t>& threads) {
    std::vector<thread_copy> copies;
    for (const auto id : threads)
      if (auto copy = copy_of(id))
        copies.push_back(std::move(*copy));
    for (const auto& c : copies) {
      auto unwound = by_.frames_of(c);
      auto& into = done_.threads[c.id];
      into.frames = std::move(unwound.frames);
      if (into.missing.empty())
        into.missing = std::move(unwound.missing);
      done_.stopped_longest = std::max(done_.stopped_longest, c.stopped_for);
      done_.stopped_in_all += c.stopped_for;
    }
    return std::move(done_);
  }

 private:
  std::optional<thread_copy> copy_of(pid_t id) {
    const auto stat = stat_of(fmt::format("/proc/{}/task/{}", pid_, id));
    auto& missing = done_.threads[id].missing;
    if (!stat) {
      missing = "the thread has ended";
      return std::nullopt;
    }
    if (stat->state == 'Z' || stat->state == 'X') {
      missing = "it has ended";
      return std::nullopt;
    }
    // It would not stop before the kernel is done with it.
    if (stat->state == 'D') {
      missing = "it was not stopped";
      return waiting(id);
    }
    if (is_refused_ || waited_ >= limits::stacks_stop_in_all_within) {
      missing = is_refused_ ? "its native stack may not be read"
                            : "it was not stopped: other threads of the process took too long to";
      return waiting(id);
    }
    return stopped(id, missing);
  }

  std::optional<thread_copy> stopped(pid_t id, std::string& missing) {
    const auto begin = clock::now();
    auto copy = copy_thread(pid_, id, limits::stacks_stop_within, end_);
    if (copy)
      return std::move(*copy);
    missing = copy.error().what;
    if (copy.error().code == errc::closed)
      return std::nullopt;
    if (copy.error().code == errc::unavailable) {
      waited_ += clock::now() - begin;
      missing = fmt::format("it did not stop within {}", in_words(limits::stacks_stop_within));
    } else {
      is_refused_ = true;
      if (const auto tracer = tracer_of(id); tracer != 0)
        missing = fmt::format("process {} traces it: a debugger?", tracer);
    }
    return waiting(id);
  }

  std::uint64_t tracer_of(pid_t id) {
    const auto text = kernel_text(fmt::format("/proc/{}/task/{}/status", pid_, id));
    const auto at = text.find("\nTracerPid:");
    return at == text.npos ? 0 : std::strtoull(text.c_str() + at + 11, nullptr, 10);
  }

  std::optional<thread_copy> waiting(pid_t id) {
    auto copy = copy_waiting_thread(pid_, id, end_);
    return copy ? std::optional<thread_copy>(std::move(*copy)) : std::nullopt;
  }

  pid_t pid_;
  unwinder& by_;
  stack_limit end_;
  native_stacks done_;
  bool is_refused_ = false;
  clock::duration waited_{};
};

} // namespace

native_stacks read_native_stacks(pid_t pid, const std::vector<pid_t>& threads,
                                 const std::vector<mapping>& mappings, elf_files& files) {
  native_stacks done;
  auto by = unwinder::of(pid, mappings, files);
  if (!by) {
    done.missing.push_back(by.error().what);
    return done;
  }
  // A thread that was asked to stop and did not is let go when the one that asked has ended.
  std::thread([&] { done = reading(pid, **by).of(threads); }).join();
  return done;
}

} // namespace troupe::os
