#include "worker/channel/fatal_signals.hpp"

#include "messages/limits.hpp"
#include "worker/progress/own_page.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::worker {

namespace {

constexpr std::array fatal{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};
/// For this handler and those that come after it; not there before it is touched.
constexpr std::size_t handler_stack_bytes = 128u << 10;
constexpr std::uint64_t wait_ns =
    std::chrono::duration_cast<std::chrono::nanoseconds>(limits::fatal_signal_wait).count();

// All that the handler reads was there before it was installed, or is atomic.
std::array<struct sigaction, fatal.size()> previous;
messages::fatal_signal_frame* frame = nullptr;
pid_t own_process = 0;
int answered = -1; ///< an eventfd
std::atomic<int> told_at{-1};
/// The first thread that was hit, and when; the others wait as long as it does.
std::atomic<pid_t> hit{0};
std::atomic<std::uint64_t> hit_at{0};
static_assert(std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

pid_t this_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

/// False: that time has come before anything did. `file` may be -1.
bool comes(int file, short what, std::uint64_t until) {
  for (;;) {
    const auto now = now_ns();
    if (now >= until)
      return false;
    pollfd one{file, what, 0};
    if (::poll(&one, 1, static_cast<int>((until - now) / 1'000'000 + 1)) > 0)
      return true;
  }
}

bool is_told(int socket, int signal, pid_t thread, std::uint64_t until) {
  auto& bytes = frame->bytes;
  std::memcpy(&bytes[frame->signal_at], &signal, sizeof signal);
  std::memcpy(&bytes[frame->thread_at], &thread, sizeof thread);
  for (;;) {
    if (::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
      return true;
    if (errno != EINTR && (errno != EAGAIN || !comes(socket, POLLOUT, until)))
      return false;
  }
}

void tell(int signal) {
  const auto self = this_thread();
  pid_t first = 0;
  if (!hit.compare_exchange_strong(first, self)) {
    // In the first one itself it is a signal that a later handler has met.
    const auto began = hit_at.load();
    if (first != self)
      (void)comes(-1, 0, (began != 0 ? began : now_ns()) + wait_ns);
    return;
  }
  const auto until = now_ns() + wait_ns;
  hit_at.store(until - wait_ns);
  const auto socket = told_at.load();
  if (socket >= 0 && is_told(socket, signal, self, until))
    (void)comes(answered, POLLIN, until);
}

/// Sent once more, with all that came with it, it is delivered as soon as this handler returns: at
/// the same instruction, and with the registers as they were.
void pass_on(int signal, siginfo_t* info) {
  for (std::size_t n = 0; n < fatal.size(); ++n)
    if (fatal[n] == signal)
      (void)::sigaction(signal, &previous[n], nullptr);
  const auto process = ::getpid();
  const auto thread = this_thread();
  if (::syscall(SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0)
    (void)::syscall(SYS_tgkill, process, thread, signal);
}

void on_fatal_signal(int signal, siginfo_t* info, void*) {
  const auto before = errno;
  // What this process has forked has the handlers, too.
  if (::getpid() == own_process)
    tell(signal);
  pass_on(signal, info);
  errno = before;
}

void give_handler_stack() {
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0)
    return;
  const auto guard = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, guard + handler_stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    return;
  (void)::mprotect(memory, guard, PROT_NONE);
  stack = {};
  stack.ss_sp = static_cast<char*>(memory) + guard;
  stack.ss_size = handler_stack_bytes;
  (void)::sigaltstack(&stack, nullptr);
}

} // namespace

void watch_fatal_signals(messages::fatal_signal_frame prepared) {
  answered = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (answered < 0)
    return;
  own_process = ::getpid();
  frame = new messages::fatal_signal_frame(std::move(prepared)); // as long as the process lives
  give_handler_stack();
  struct sigaction own {};
  own.sa_sigaction = on_fatal_signal;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t n = 0; n < fatal.size(); ++n) {
    const bool is_known = ::sigaction(fatal[n], nullptr, &previous[n]) == 0;
    const bool is_ignored =
        (previous[n].sa_flags & SA_SIGINFO) == 0 && previous[n].sa_handler == SIG_IGN;
    if (is_known && !is_ignored)
      (void)::sigaction(fatal[n], &own, nullptr);
  }
}

void fatal_signal_is_answered() {
  const std::uint64_t one = 1;
  if (hit.load() != 0)
    (void)!::write(answered, &one, sizeof one);
}

void tell_fatal_signals_at(int socket) {
  told_at.store(socket);
  if (socket < 0)
    fatal_signal_is_answered();
}

} // namespace troupe::worker
