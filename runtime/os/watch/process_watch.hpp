#pragma once

#include "diag/progress_host.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/watch/process_looks.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::os {

/// Where stacks are kept.
struct stacks_folders {
  std::string crashes; ///< of processes that a fatal signal has hit
  std::string dumps;   ///< of each dump the files of this node's ranks; empty: nowhere
};

/// The real progress_host: pages that processes share with this one, /proc, and stacks. Looks,
/// dumps, their files and crashes have a thread each, since all may wait for a disk.
class process_watch : public diag::progress_host {
 public:
  /// `pages`: of each local rank, a descriptor of diag::page_bytes that is sealed against being
  /// made shorter; it stays the caller's. `program`: the file of `troupe`, which reads stacks as a
  /// child. Error: a page cannot be mapped.
  static result<std::shared_ptr<process_watch>> open(const std::vector<int>& pages,
                                                     std::string program, stacks_folders folders);
  ~process_watch() override;

  void watch(const std::vector<diag::watched_process>& processes) override;
  std::vector<diag::page_reading> read(const std::vector<std::uint32_t>& local_ranks) override;
  duration slept() override;
  void look(const std::vector<std::uint32_t>& local_ranks, looked done) override;
  void dump(const std::vector<std::uint32_t>& local_ranks, duration within, dumped done) override;
  void read_crashes(std::uint64_t generation, const std::vector<diag::crashed_process>& processes,
                    duration within, crashes_read done) override;

 private:
  class pages;
  process_watch(std::unique_ptr<pages> p, std::string program, stacks_folders folders);

  /// The process that trains: the one that was started, or what it has started in turn and that has
  /// taken the page. 0: it is not watched.
  pid_t trains(std::uint32_t local_rank) const;
  pid_t started(std::uint32_t local_rank) const;
  std::optional<diag::page_view> page_of(std::uint32_t local_rank) const;
  pid_t script_thread_of(std::uint32_t local_rank, pid_t pid) const;
  diag::dump_result read_stacks(const std::vector<std::uint32_t>& local_ranks, duration within);
  /// Begins to write the files of a dump, unless those of an earlier one are still being written.
  /// An error of an earlier one is told in `read`.
  void keep(diag::dump_result& read);

  std::unique_ptr<pages> pages_;
  std::string program_;
  stacks_folders folders_;
  mutable std::mutex mutex_; ///< of what follows
  std::vector<diag::watched_process> watched_;
  bool keeps_ = false;
  std::string not_kept_; ///< why files of the last dump were not written
  process_looks looks_;  ///< of the first thread alone
  io_thread looking_{"troupe-looks"}, dumping_{"troupe-stacks"}, keeping_{"troupe-dumps"},
      crashes_{"troupe-crashes"};
};

} // namespace troupe::os
