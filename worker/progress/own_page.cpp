#include "worker/progress/own_page.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::worker {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Memory of this process's own: all zero, and not there before it is touched.
diag::progress_page unread_page;
diag::page_writer unread(unread_page);

alignas(diag::page_writer) unsigned char taken_place[sizeof(diag::page_writer)];
std::atomic<diag::page_writer*> current{&unread};

thread_local char this_thread; // its address
std::atomic<const char*> script_thread{nullptr};
std::atomic<bool> has_stepped{false};
std::atomic<void (*)(std::uint64_t)> first_step{nullptr};

/// The kernel's number of this thread: one system call in its life. A fork writes into no page.
std::uint64_t thread_number() {
  thread_local const auto number = static_cast<std::uint64_t>(::syscall(SYS_gettid));
  return number;
}

/// Where a process may look only at its descendants (Yama), the launcher lets its own children look
/// at its workers. That does not pass to what a worker forks: a data loader says it again.
void let_be_looked_at() {
  const char* keeper = std::getenv("TROUPE_KEEPER");
  if (keeper != nullptr)
    (void)::prctl(PR_SET_PTRACER, std::strtoul(keeper, nullptr, 10), 0, 0, 0);
}

void in_forked_child() {
  let_be_looked_at();
  current.store(&unread, relaxed);
  first_step.store(nullptr, relaxed);
}

/// The number in TROUPE_PROGRESS_FD if that is open, and the file that the launcher made.
int inherited() {
  const char* said = std::getenv("TROUPE_PROGRESS_FD");
  if (said == nullptr || *said < '0' || *said > '9')
    return -1;
  char* end = nullptr;
  const auto number = std::strtol(said, &end, 10);
  if (*end != '\0' || number > 1 << 20)
    return -1;
  char link[32 + 20], target[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%ld", number);
  const auto length = ::readlink(link, target, sizeof target - 1);
  if (length < 0)
    return -1;
  target[length] = '\0';
  const auto wanted = std::string_view("/memfd:").size();
  if (std::strncmp(target, "/memfd:", wanted) != 0 ||
      std::strncmp(target + wanted, page_file_name, std::strlen(page_file_name)) != 0)
    return -1;
  struct stat seen {};
  const auto file = static_cast<int>(number);
  if (::fstat(file, &seen) != 0 || seen.st_size < static_cast<off_t>(diag::page_bytes))
    return -1;
  return file;
}

/// Of several processes one has it: the first, until that has ended. A lock says so, which the
/// kernel lets go with the process: it is not a fork's, and stays over an exec.
bool claim(int file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLK, &whole) == 0;
}

bool take_it() {
  const auto file = inherited();
  if (file < 0)
    return false;
  void* memory = ::mmap(nullptr, diag::page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return false;
  auto& shared = *static_cast<diag::progress_page*>(memory);
  if (!claim(file) || ::pthread_atfork(nullptr, nullptr, in_forked_child) != 0) {
    ::munmap(memory, diag::page_bytes);
    return false;
  }
  auto* writer = new (taken_place) diag::page_writer(shared);
  script_thread.store(&this_thread, relaxed);
  writer->take(static_cast<std::uint64_t>(::getpid()), now_ns());
  writer->script_thread(thread_number());
  current.store(writer, std::memory_order_release);
  return true;
}

} // namespace

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool has_page() {
  return current.load(relaxed) != &unread;
}

bool take_page() {
  static std::once_flag once;
  std::call_once(once, take_it);
  return has_page();
}

diag::page_writer& page() {
  return *current.load(std::memory_order_acquire);
}

bool is_script_thread() {
  return script_thread.load(relaxed) == &this_thread;
}

bool makes_steps() {
  if (has_stepped.load(relaxed))
    return is_script_thread();
  if (has_stepped.exchange(true))
    return is_script_thread();
  script_thread.store(&this_thread, relaxed);
  page().script_thread(thread_number());
  return true;
}

void makes_collective() {
  static std::atomic<std::uint64_t> last{0};
  const auto now = thread_number();
  if (has_stepped.load(relaxed) || last.load(relaxed) == now)
    return;
  last.store(now, relaxed);
  page().script_thread(now);
}

void on_first_step(void (*then)(std::uint64_t)) {
  first_step.store(then);
}

void step_made(std::uint64_t at_ns) {
  if (first_step.load(relaxed) == nullptr)
    return;
  if (auto* const then = first_step.exchange(nullptr))
    then(at_ns);
}

} // namespace troupe::worker
