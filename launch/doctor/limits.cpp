#include "launch/doctor/limits.hpp"

#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace troupe::launch::doctor {

namespace {

/// The launcher's own processes with their threads.
constexpr std::uint64_t processes_anyway = 32;
/// A worker with torch's threads and some DataLoader workers; on large machines it has more.
constexpr std::uint64_t processes_per_worker = 64;
/// Below this a checkpoint of a small model is cut off.
constexpr std::uint64_t file_size_least = 1ull << 30;

finding judge_open_files(const limits_facts& seen) {
  finding f{"open files"};
  if (!seen.too_few_open_files.empty()) {
    f.how = grade::error;
    f.found = seen.too_few_open_files;
    f.costs = "the launcher ends before it starts a worker";
    return f;
  }
  f.found = fmt::format("{} needed, {} allowed", seen.open_files_needed, seen.open_files.now);
  // Workers get what the launcher was started with.
  if (seen.open_files.before < std::min<std::uint64_t>(seen.open_files.now, 1'024)) {
    f.how = grade::warning;
    f.found += fmt::format("; a worker is allowed {}", seen.open_files.before);
    f.costs = "a DataLoader with several workers ends with \"Too many open files\"";
    f.remedy = "ulimit -n 1024 or more before the launcher is started";
  }
  return f;
}

finding judge_process_count(const limits_facts& seen) {
  finding f{"processes"};
  constexpr auto none = std::numeric_limits<std::uint64_t>::max();
  const auto of_user = seen.above_process_limit ? none : seen.processes.value_or(none);
  const auto of_group = seen.pids_left.value_or(none);
  const auto allowed = std::min(of_user, of_group);
  if (allowed == none) {
    f.found = "no limit for this user";
    return f;
  }
  f.found = fmt::format("{} {}", allowed,
                        of_group < of_user ? "are left of pids.max of the control group"
                                           : "allowed (ulimit -u, for all of this user)");
  const auto least = processes_anyway + seen.workers;
  const auto usual = processes_anyway + seen.workers * processes_per_worker;
  if (allowed >= usual)
    return f;
  f.how = allowed < least ? grade::error : grade::warning;
  f.costs = fmt::format("threads count: {} worker{} with torch often use {}; then \"Resource "
                        "temporarily unavailable\" ends them",
                        seen.workers, seen.workers == 1 ? "" : "s", usual);
  f.remedy = "raise ulimit -u, --pids-limit of docker or TasksMax of systemd; fewer "
             "OMP_NUM_THREADS help too";
  return f;
}

finding judge_locked(const limits_facts& seen) {
  finding f{"locked memory"};
  if (!seen.locked) {
    f.found = "no limit";
    return f;
  }
  f.found = fmt::format("{} allowed (ulimit -l)", os::in_words(*seen.locked));
  if (!seen.has_rdma)
    return f;
  f.how = grade::warning;
  f.costs = "NCCL registers memory with the InfiniBand or RoCE card of this machine and fails with "
            "\"Cannot allocate memory\"";
  f.remedy = "ulimit -l unlimited; --ulimit memlock=-1 for docker; LimitMEMLOCK=infinity for "
             "systemd";
  return f;
}

finding judge_core(const limits_facts& seen) {
  finding f{"core dumps"};
  if (!seen.core || *seen.core > 0) {
    f.found = seen.core ? fmt::format("up to {}", os::in_words(*seen.core)) : "no limit";
    return f;
  }
  f.how = grade::note;
  f.found = "none are made (ulimit -c is 0)";
  f.costs = "a worker that ends by SIGSEGV leaves no memory image to look into";
  f.remedy = "ulimit -c unlimited, if one is wanted";
  return f;
}

finding judge_file_size(const limits_facts& seen) {
  finding f{"file size"};
  if (!seen.file_size) {
    f.found = "no limit";
    return f;
  }
  f.how = *seen.file_size < file_size_least ? grade::warning : grade::note;
  f.found = fmt::format("at most {} (ulimit -f)", os::in_words(*seen.file_size));
  f.costs = "a larger checkpoint cannot be written";
  f.remedy = "ulimit -f unlimited";
  return f;
}

} // namespace

findings judge(const limits_facts& seen) {
  return {judge_open_files(seen), judge_process_count(seen), judge_locked(seen),
          judge_file_size(seen), judge_core(seen)};
}

findings judge(const process_facts& seen) {
  finding tree{"process tree", grade::ok, "the launcher can find the processes below it"};
  if (const auto why = seen.no_subreaper.empty() ? seen.no_children : seen.no_subreaper;
      !why.empty())
    tree = {tree.subject, grade::error, why, "the launcher cannot tell how its workers ended",
            "mount /proc, and let the seccomp profile of the container allow prctl"};
  finding group{"control group", grade::ok, "workers get one of their own"};
  if (!seen.no_control_group.empty())
    group = {group.subject, grade::note, "none for the workers: " + seen.no_control_group,
             "daemons of a killed job are found by their environment; one that has cleared it "
             "stays",
             "delegate a group of version 2: systemd-run --user --scope -p Delegate=yes …"};
  return {tree, group};
}

} // namespace troupe::launch::doctor
