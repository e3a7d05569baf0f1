#include "runtime/os/process/clone_into.hpp"

#include <cerrno>
#include <cstdint>

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::os {

namespace {

// A child that shares our memory needs a stack of its own, and glibc 2.36 has no name for clone3: a
// call of syscall() would return in the child to where nothing lies. So the call itself is here.
#if defined(__x86_64__)

constexpr bool is_spelled = true;

long clone3_onto(const clone_args& how, int (*run)(void*), void* argument) {
  long answer = SYS_clone3;
  asm volatile("syscall\n\t"
               "testq %%rax, %%rax\n\t"
               "jnz 1f\n\t"
               "movq %[argument], %%rdi\n\t"
               "callq *%[run]\n\t"
               "ud2\n"
               "1:"
               : "+a"(answer)
               : "D"(&how), "S"(sizeof how), [run] "r"(run), [argument] "r"(argument)
               : "rcx", "r11", "cc", "memory");
  return answer;
}

#elif defined(__aarch64__)

constexpr bool is_spelled = true;

long clone3_onto(const clone_args& how, int (*run)(void*), void* argument) {
  register long number asm("x8") = SYS_clone3;
  register long answer asm("x0") = reinterpret_cast<long>(&how);
  register long size asm("x1") = sizeof how;
  asm volatile("svc #0\n\t"
               "cbnz x0, 1f\n\t"
               "mov x0, %[argument]\n\t"
               "blr %[run]\n\t"
               "brk #1\n"
               "1:"
               : "+r"(answer)
               : "r"(number), "r"(size), [run] "r"(run), [argument] "r"(argument)
               : "cc", "memory");
  return answer;
}

#else

constexpr bool is_spelled = false;

long clone3_onto(const clone_args&, int (*)(void*), void*) {
  return -ENOSYS;
}

#endif

} // namespace

bool can_clone_into() {
  // Arguments too short for any kernel: one that has the call says so.
  return is_spelled && ::syscall(SYS_clone3, nullptr, 0) < 0 && errno == EINVAL;
}

pid_t clone_into(int group, child_of whose, int (*run)(void*), std::byte* stack,
                 std::size_t stack_size, void* argument) {
  clone_args how{};
  how.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  if (whose == child_of::our_parent)
    how.flags |= CLONE_PARENT;
  how.stack = reinterpret_cast<std::uintptr_t>(stack);
  how.stack_size = stack_size;
  how.cgroup = static_cast<std::uint64_t>(group);
  const long answer = clone3_onto(how, run, argument);
  if (answer >= 0)
    return static_cast<pid_t>(answer);
  errno = static_cast<int>(-answer);
  return -1;
}

} // namespace troupe::os
