#include "runtime/os/stacks/stopped_thread.hpp"

#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/process_memory.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace troupe::os {

namespace {

using clock = std::chrono::steady_clock;

/// Below the stack pointer, what a function that calls no other may use of it.
constexpr std::uint64_t red_zone = 128;

/// Holds a seized thread; whatever happens, lets it go if it has stopped.
class seized {
 public:
  explicit seized(pid_t thread) : thread_(thread) {}
  seized(const seized&) = delete;
  seized& operator=(const seized&) = delete;
  ~seized() {
    if (is_stopped_)
      ::ptrace(PTRACE_DETACH, thread_, nullptr, static_cast<long>(signal_));
  }

  /// Waits until it has stopped; errc::unavailable after `patience`.
  result<void> await(duration patience) {
    const auto until = clock::now() + patience;
    // Nearly every thread stops within this.
    constexpr int yields = 200;
    for (int n = 0;; ++n) {
      int status = 0;
      const auto got = ::waitpid(thread_, &status, __WALL | WNOHANG);
      if (got == thread_)
        return stopped_with(status);
      if (got < 0 && errno != EINTR)
        return failure(errc::closed, "the thread has ended");
      if (clock::now() > until)
        return failure(errc::unavailable, "the thread does not stop");
      if (n < yields) {
        ::sched_yield();
      } else {
        constexpr long pause = 50'000;
        const timespec time{0, pause};
        ::nanosleep(&time, nullptr);
      }
    }
  }

 private:
  result<void> stopped_with(int status) {
    if (!WIFSTOPPED(status))
      return failure(errc::closed, "the thread has ended");
    is_stopped_ = true;
    // Anything but the stop that was asked for, or one of its whole group, is a signal on its way.
    const auto event = status >> 16;
    signal_ = event == 0 ? WSTOPSIG(status) : 0;
    return {};
  }

  pid_t thread_;
  bool is_stopped_ = false;
  int signal_ = 0;
};

std::vector<char>& copying_place() {
  static thread_local std::vector<char> place(limits::stacks_copied_max);
  return place;
}

void copy_stack(pid_t process, std::uint64_t end, thread_copy& copy) {
  const auto sp = stack_pointer_of(copy.registers);
  copy.stack_begin = sp > red_zone ? sp - red_zone : sp;
  if (end <= copy.stack_begin)
    return;
  // One for all threads, there before any of them stops: no memory is asked of the system
  // meanwhile.
  auto& into = copying_place();
  const auto wanted = std::min<std::uint64_t>(end - copy.stack_begin, into.size());
  const auto got = process_memory::read_directly(process, copy.stack_begin, into.data(), wanted);
  copy.stack.assign(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(got));
}

} // namespace

#if defined(__x86_64__)
std::uint64_t stack_pointer_of(const user_regs_struct& registers) {
  return registers.rsp;
}
std::uint64_t instruction_of(const user_regs_struct& registers) {
  return registers.rip;
}
static void set_place(user_regs_struct& registers, std::uint64_t sp, std::uint64_t pc) {
  registers.rsp = sp;
  registers.rip = pc;
}
#elif defined(__aarch64__)
std::uint64_t stack_pointer_of(const user_regs_struct& registers) {
  return registers.sp;
}
std::uint64_t instruction_of(const user_regs_struct& registers) {
  return registers.pc;
}
static void set_place(user_regs_struct& registers, std::uint64_t sp, std::uint64_t pc) {
  registers.sp = sp;
  registers.pc = pc;
}
#else
#error "native stacks are read on x86-64 and aarch64"
#endif

result<thread_copy> copy_thread(pid_t process, pid_t thread, duration patience,
                                const stack_limit& stack_end) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0)
    return errno == ESRCH ? failure(errc::closed, "the thread has ended")
                          : failure(errc::refused, permission_words(process));
  thread_copy copy;
  copy.id = thread;
  (void)copying_place();
  clock::time_point begin;
  {
    seized held(thread);
    begin = clock::now();
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0)
      return failure(errc::closed, "the thread has ended");
    if (const auto stopped = held.await(patience); !stopped)
      return tl::make_unexpected(stopped.error());
    iovec registers{&copy.registers, sizeof copy.registers};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): ptrace wants the number of the set as a pointer
    if (::ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &registers) != 0)
      return failure(errc::closed, "the thread has ended");
    copy_stack(process, stack_end(stack_pointer_of(copy.registers)), copy);
  }
  copy.stopped_for = std::chrono::duration_cast<duration>(clock::now() - begin);
  copy.is_whole = true;
  return copy;
}

result<thread_copy> copy_waiting_thread(pid_t process, pid_t thread, const stack_limit& stack_end) {
  // "running", or the call with six arguments, the stack pointer and the place.
  const auto line = first_line_of(fmt::format("/proc/{}/task/{}/syscall", process, thread));
  const auto last = line.rfind(' ');
  const auto before = last == line.npos || last == 0 ? line.npos : line.rfind(' ', last - 1);
  if (before == line.npos)
    return failure(errc::unavailable, "where it is cannot be read");
  thread_copy copy;
  copy.id = thread;
  set_place(copy.registers, std::strtoull(line.c_str() + before + 1, nullptr, 16),
            std::strtoull(line.c_str() + last + 1, nullptr, 16));
  if (stack_pointer_of(copy.registers) == 0)
    return failure(errc::unavailable, "where it is cannot be read");
  copy_stack(process, stack_end(stack_pointer_of(copy.registers)), copy);
  return copy;
}

} // namespace troupe::os
