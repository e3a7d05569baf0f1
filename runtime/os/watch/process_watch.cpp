#include "runtime/os/watch/process_watch.hpp"

#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/watch/crash_files.hpp"
#include "runtime/os/watch/dump_files.hpp"
#include "runtime/os/watch/limits.hpp"
#include "runtime/os/watch/stacks_child.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace troupe::os {

namespace {

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace

/// Of each local rank, mapped for reading only.
class process_watch::pages {
 public:
  ~pages() {
    for (void* page : mapped_)
      ::munmap(page, diag::page_bytes);
  }

  result<void> map(int descriptor) {
    void* page = ::mmap(nullptr, diag::page_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (page == MAP_FAILED)
      return failure(errc::refused, fmt::format("the memory in which workers report their progress "
                                                "cannot be mapped: {}",
                                                std::strerror(errno)));
    mapped_.push_back(page);
    return {};
  }
  const diag::progress_page* of(std::uint32_t local_rank) const {
    return local_rank < mapped_.size()
               ? static_cast<const diag::progress_page*>(mapped_[local_rank])
               : nullptr;
  }

 private:
  std::vector<void*> mapped_;
};

result<std::shared_ptr<process_watch>> process_watch::open(const std::vector<int>& pages_given,
                                                           std::string program,
                                                           stacks_folders folders) {
  auto mapped = std::make_unique<pages>();
  for (const int descriptor : pages_given)
    if (auto one = mapped->map(descriptor); !one)
      return tl::make_unexpected(one.error());
  return std::shared_ptr<process_watch>(
      new process_watch(std::move(mapped), std::move(program), std::move(folders)));
}

process_watch::process_watch(std::unique_ptr<pages> p, std::string program, stacks_folders folders)
    : pages_(std::move(p)), program_(std::move(program)), folders_(std::move(folders)) {}

process_watch::~process_watch() = default;

void process_watch::watch(const std::vector<diag::watched_process>& processes) {
  std::vector<pid_t> trained;
  {
    const std::lock_guard lock(mutex_);
    watched_ = processes;
  }
  for (const auto& p : processes)
    trained.push_back(trains(p.local_rank));
  boost::asio::post(looking_.context(),
                    [this, trained = std::move(trained)] { looks_.keep_only(trained); });
}

std::optional<diag::page_view> process_watch::page_of(std::uint32_t local_rank) const {
  const auto* page = pages_->of(local_rank);
  return page != nullptr ? diag::read_page(*page, nanoseconds(CLOCK_MONOTONIC)) : std::nullopt;
}

/// A worker leads its own session, so what a shell script has started of it is known by that.
pid_t process_watch::trains(std::uint32_t local_rank) const {
  const auto session = started(local_rank);
  const auto page = session != 0 ? page_of(local_rank) : std::nullopt;
  const auto by_page = page ? static_cast<pid_t>(page->pid) : 0;
  return by_page > 0 && ::getsid(by_page) == session ? by_page : session;
}

pid_t process_watch::started(std::uint32_t local_rank) const {
  const std::lock_guard lock(mutex_);
  for (const auto& p : watched_)
    if (p.local_rank == local_rank)
      return p.pid;
  return 0;
}

/// As its own page says, and no other process's.
pid_t process_watch::script_thread_of(std::uint32_t local_rank, pid_t pid) const {
  const auto page = page_of(local_rank);
  return page && static_cast<pid_t>(page->pid) == pid ? static_cast<pid_t>(page->script_thread) : 0;
}

std::vector<diag::page_reading> process_watch::read(const std::vector<std::uint32_t>& local_ranks) {
  std::vector<diag::page_reading> all;
  for (const auto local : local_ranks) {
    auto page = page_of(local);
    const auto pid = trains(local);
    // What an earlier process has left there says nothing of this one.
    if (page && static_cast<pid_t>(page->pid) != pid)
      page.reset();
    const auto stat = pid > 0 ? stat_of(fmt::format("/proc/{}", pid)) : std::nullopt;
    auto state = stat ? stat->state : pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH ? 'X' : '\0';
    // Of a shell script one program may end and the next begin.
    if ((state == 'X' || state == 'Z') && pid != started(local))
      state = '\0';
    all.push_back({local, std::move(page), state});
  }
  return all;
}

duration process_watch::slept() {
  const auto monotonic = nanoseconds(CLOCK_MONOTONIC), boot = nanoseconds(CLOCK_BOOTTIME);
  return std::chrono::nanoseconds(boot > monotonic ? boot - monotonic : 0);
}

void process_watch::look(const std::vector<std::uint32_t>& local_ranks, looked done) {
  boost::asio::post(looking_.context(), [this, local_ranks, done = std::move(done)] {
    std::vector<diag::process_look> all;
    looks_.begin();
    for (const auto local : local_ranks) {
      // Where nothing is watched there are no pages; stacks can be asked for all the same.
      if (pages_->of(local) == nullptr)
        continue;
      if (const auto pid = trains(local); pid > 0)
        if (auto look = looks_.at(local, pid, script_thread_of(local, pid)))
          all.push_back(std::move(*look));
    }
    done(std::move(all));
  });
}

diag::dump_result process_watch::read_stacks(const std::vector<std::uint32_t>& local_ranks,
                                             duration within) {
  std::vector<dumped_process> processes;
  std::vector<diag::watched_process> watched;
  {
    const std::lock_guard lock(mutex_);
    watched = watched_;
  }
  for (const auto& p : watched)
    if (processes.size() < limits::dumped_processes_max &&
        std::find(local_ranks.begin(), local_ranks.end(), p.local_rank) != local_ranks.end())
      processes.push_back({trains(p.local_rank), p.rank});
  if (processes.empty())
    return {};
  auto read = read_in_child(program_, processes, true, within);
  for (auto& process : read.stacks)
    for (const auto& p : watched)
      if (p.rank == process.rank)
        process.world_size = p.world_size;
  return read;
}

void process_watch::keep(diag::dump_result& read) {
  if (folders_.dumps.empty())
    return;
  const std::lock_guard lock(mutex_);
  if (!not_kept_.empty())
    read.missing.push_back("files of the last dump: " + not_kept_);
  if (std::exchange(keeps_, true)) {
    read.missing.push_back(
        "files of this dump: those of an earlier one are still being written to " + folders_.dumps);
    return;
  }
  boost::asio::post(keeping_.context(), [this, read] {
    const auto kept = keep_dumps(folders_.dumps, read);
    const std::lock_guard done(mutex_);
    keeps_ = false;
    not_kept_ = kept ? std::string() : kept.error().what;
  });
}

void process_watch::dump(const std::vector<std::uint32_t>& local_ranks, duration within,
                         dumped done) {
  boost::asio::post(dumping_.context(), [this, local_ranks, within, done = std::move(done)] {
    auto read = read_stacks(local_ranks, within);
    keep(read);
    done(std::move(read));
  });
}

void process_watch::read_crashes(std::uint64_t generation,
                                 const std::vector<diag::crashed_process>& processes,
                                 duration within, crashes_read done) {
  boost::asio::post(
      crashes_.context(), [this, generation, processes, within, done = std::move(done)] {
        std::vector<dumped_process> read;
        for (const auto& p : processes)
          if (read.size() < limits::dumped_processes_max)
            read.push_back({p.pid, p.rank});
        auto found = read_in_child(program_, read, false, within);
        done(keep_crashes(folders_.crashes, generation, processes, std::move(found), within));
      });
}

} // namespace troupe::os
