#pragma once

#include "diag/process_look.hpp"
#include "diag/progress/page_view.hpp"
#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What the node supervisor can learn of its training processes without their help.
///
/// Pages say what a process has reported; only /proc and stacks say what it does when it reports
/// nothing. Both are behind this port, so that decisions see values and tests need no processes.
namespace troupe::diag {

/// A process that is watched. `pid` guards against a number that is used again.
struct watched_process {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::int32_t pid = 0;
  std::uint32_t world_size = 0;
};

/// What the memory of a training process says now, and whether it is stopped. Costs microseconds.
struct page_reading {
  std::uint32_t local_rank = 0;
  std::optional<page_view> page; ///< nothing: the process has not taken its page
  char state = 0;                ///< as in `process_look`; X: it is gone; 0: not known
};

/// The stacks of several processes, as far as they came in time.
struct dump_result {
  std::vector<process_stacks> stacks;
  std::vector<std::string> missing; ///< one line for each process that could not be read in time
};

/// A process that a fatal signal has hit, and that waits until its stacks are read.
struct crashed_process {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::int32_t pid = 0;
  std::int32_t thread = 0; ///< that was hit, as the process says
};

/// What was found of one of them.
struct crash_report {
  std::uint32_t rank = 0;
  std::string place; ///< "strlen() at crash.py:12 (parse)"; empty: unknown
  std::string file;  ///< with all its stacks; empty: for the reason in `why`
  std::string why;
};

/// Answers come on the caller's thread or another one; the shell makes messages of them.
class progress_host {
 public:
  virtual ~progress_host() = default;

  /// From now on these are the processes; those that are not named are let go of. Their pages are
  /// by local rank.
  virtual void watch(const std::vector<watched_process>& processes) = 0;
  /// At once: it reads memory, and a line that the kernel keeps in memory.
  virtual std::vector<page_reading> read(const std::vector<std::uint32_t>& local_ranks) = 0;
  /// So long this machine has slept since it started: CLOCK_BOOTTIME less CLOCK_MONOTONIC.
  virtual duration slept() = 0;

  using looked = std::function<void(std::vector<process_look>)>;
  /// Of processes that are gone there is no look in the answer.
  virtual void look(const std::vector<std::uint32_t>& local_ranks, looked done) = 0;

  using dumped = std::function<void(dump_result)>;
  virtual void dump(const std::vector<std::uint32_t>& local_ranks, duration within,
                    dumped done) = 0;

  using crashes_read = std::function<void(std::vector<crash_report>)>;
  /// Reads the stacks of processes that are about to end, and keeps them in files of `generation`.
  /// One report for each of them. Other reading does not hold it up.
  virtual void read_crashes(std::uint64_t generation, const std::vector<crashed_process>& processes,
                            duration within, crashes_read done) = 0;
};

/// Where nothing can be learnt of processes.
class no_progress_host : public progress_host {
 public:
  void watch(const std::vector<watched_process>&) override {}
  std::vector<page_reading> read(const std::vector<std::uint32_t>&) override { return {}; }
  duration slept() override { return {}; }
  void look(const std::vector<std::uint32_t>&, looked done) override { done({}); }
  void dump(const std::vector<std::uint32_t>&, duration, dumped done) override { done({}); }
  void read_crashes(std::uint64_t, const std::vector<crashed_process>&, duration,
                    crashes_read done) override {
    done({});
  }
};

} // namespace troupe::diag
