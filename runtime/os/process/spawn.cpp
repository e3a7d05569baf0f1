#include "runtime/os/process/spawn.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/process/clone_into.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

// glibc's other name for clone. ThreadSanitizer intercepts the first and takes the child for a
// process with memory of its own.
// clang-format off
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...); // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
// clang-format on

namespace troupe::os {

namespace {

enum class step : int {
  none,
  session,
  death_signal,
  open_files,
  directory,
  streams,
  descriptors,
  program
};

/// What the child needs, all of it prepared: between clone and exec it may only make system calls.
struct child_plan {
  const char* program;
  char* const* argv;
  char* const* environment;
  int directory; ///< -1: stay
  int out;       ///< -1: inherit
  int err;
  const int* descriptors;
  std::size_t descriptor_count;
  pid_t parent;
  bool limit_open_files;
  rlimit open_files;

  // The child's answer when it could not exec.
  step failed = step::none;
  int reason = 0;
};

constexpr int exec_failed_status = 127;

// The child shares our memory, a sanitizer's included: no instrumentation, and raw system calls
// where a sanitizer would take note.
#define TROUPE_RUNS_IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

[[noreturn]] TROUPE_RUNS_IN_CHILD void leave() {
  for (;;)
    ::syscall(SYS_exit_group, exec_failed_status);
}

TROUPE_RUNS_IN_CHILD void require(child_plan& plan, step what, long answer) {
  if (answer >= 0)
    return;
  plan.reason = errno;
  plan.failed = what;
  leave();
}

/// Ignored signals survive exec, handled ones would run on our memory once unblocked. So all become
/// what a program expects to find.
TROUPE_RUNS_IN_CHILD void reset_signals() {
  constexpr long set_size = 8;
  // As the kernel has it: handler SIG_DFL, no flags, no restorer, empty mask.
  const unsigned long default_action[4] = {};
  for (int number = 1; number < NSIG; ++number)
    ::syscall(SYS_rt_sigaction, number, default_action, nullptr, set_size);
  const unsigned long none = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, set_size);
}

TROUPE_RUNS_IN_CHILD int run_child(void* memory) {
  auto& plan = *static_cast<child_plan*>(memory);
  require(plan, step::session, ::syscall(SYS_setsid));
  require(plan, step::death_signal, ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
  // Had the parent died before the line above, no signal would end this process.
  if (::syscall(SYS_getppid) != plan.parent)
    leave();
  // Where a process may look only at its descendants (Yama), the keeper's other children may look
  // at this one too: the node supervisor reads stacks of workers that hang. Elsewhere it is refused
  // and not needed.
  ::syscall(SYS_prctl, PR_SET_PTRACER, plan.parent, 0, 0, 0);
  reset_signals();
  if (plan.limit_open_files)
    require(plan, step::open_files,
            ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &plan.open_files, nullptr));
  if (plan.directory >= 0)
    require(plan, step::directory, ::syscall(SYS_fchdir, plan.directory));
  if (plan.out >= 0)
    require(plan, step::streams, ::syscall(SYS_dup3, plan.out, STDOUT_FILENO, 0));
  if (plan.err >= 0)
    require(plan, step::streams, ::syscall(SYS_dup3, plan.err, STDERR_FILENO, 0));
  // All our descriptors are close-on-exec. This is for those that we inherited; kernels before 5.11
  // pass them on.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (std::size_t i = 0; i < plan.descriptor_count; ++i)
    require(plan, step::descriptors, ::syscall(SYS_fcntl, plan.descriptors[i], F_SETFD, 0));
  require(plan, step::program, ::syscall(SYS_execve, plan.program, plan.argv, plan.environment));
  leave();
}

std::vector<char*> c_strings(const std::vector<std::string>& from) {
  std::vector<char*> pointers;
  pointers.reserve(from.size() + 1);
  for (const std::string& s : from)
    pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string explain(const ports::process_spec& spec, const child_plan& plan) {
  const std::string why = system_message(plan.reason);
  switch (plan.failed) {
  case step::directory:
    return fmt::format("working directory '{}': {}", spec.working_directory, why);
  case step::open_files:
    return fmt::format("limit of open files: {}", why);
  case step::program:
    break;
  default:
    return fmt::format("program '{}' could not be started: {}", plan.program, why);
  }
  switch (plan.reason) {
  // The file itself was found before.
  case ENOENT:
    return fmt::format("program '{}': its interpreter (#! line or loader) does not exist",
                       plan.program);
  case ENOEXEC:
    return fmt::format("program '{}' is neither for this machine nor a script with a #! line",
                       plan.program);
  default:
    return fmt::format("program '{}' cannot be executed: {}", plan.program, why);
  }
}

rlimit soft_limit(std::uint64_t wanted) {
  rlimit limit{};
  invariant(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit failed");
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  return limit;
}

int descriptor(const std::optional<unique_fd>& fd) {
  return fd ? fd->get() : -1;
}

/// Answers once the child has left our memory.
pid_t run_apart(child_plan& plan, int group) {
  alignas(16) std::array<std::byte, 16u << 10> stack;
  pid_t pid = -1;
  if (group >= 0)
    pid = clone_into(group, child_of::our_parent, run_child, stack.data(), stack.size(), &plan);
  // A group that takes no process any more is no reason not to train.
  if (pid < 0)
    pid = ::__clone(run_child, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | CLONE_PARENT,
                    &plan);
  return pid;
}

} // namespace

result<pid_t> spawn(const ports::process_spec& spec, std::optional<std::uint64_t> open_files,
                    int group) {
  auto prepared = launch_plan::make(spec);
  if (!prepared)
    return tl::make_unexpected(prepared.error());
  const auto argv = c_strings(spec.argv);
  const auto environment = c_strings(spec.environment);
  child_plan plan{prepared->program.c_str(),
                  argv.data(),
                  environment.data(),
                  descriptor(prepared->directory),
                  descriptor(prepared->out),
                  descriptor(prepared->err),
                  spec.descriptors.data(),
                  spec.descriptors.size(),
                  ::getppid(),
                  open_files.has_value(),
                  open_files ? soft_limit(*open_files) : rlimit{}};

  const pid_t pid = run_apart(plan, group);
  if (pid < 0)
    return failure(errc::unavailable, fmt::format("program '{}' could not be started: {}",
                                                  plan.program, system_message(errno)));
  if (plan.failed == step::none)
    return pid;
  return failure(errc::invalid, explain(spec, plan));
}

} // namespace troupe::os
