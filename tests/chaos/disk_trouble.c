// Loaded into the programs of a machine by LD_PRELOAD (disks.py): as long as the file
// CHAOS_DISK_TROUBLE exists, what they write below CHAOS_DISK_PLACE fails or takes its time. Reads
// are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_uint operations;
static const char *trouble, *place; // by the environment at the start

__attribute__((constructor)) static void read_environment(void) {
  trouble = getenv("CHAOS_DISK_TROUBLE");
  place = getenv("CHAOS_DISK_PLACE");
}

static int any_trouble(void) {
  return trouble && syscall(SYS_access, trouble, F_OK) == 0;
}

// Whether this operation is to fail; has slept if it is to be slow.
static int troubled(void) {
  char text[64] = "";
  const int from = (int)syscall(SYS_openat, AT_FDCWD, trouble, O_RDONLY | O_CLOEXEC, 0);
  if (from < 0)
    return 0;
  const ssize_t got = syscall(SYS_read, from, text, sizeof text - 1);
  syscall(SYS_close, from);
  unsigned number = 0;
  if (got > 0 && sscanf(text, "slow %u", &number) == 1) {
    const struct timespec pause = {number / 1000, (long)(number % 1000) * 1000000};
    nanosleep(&pause, NULL);
    return 0;
  }
  if (got > 0 && sscanf(text, "error %u", &number) == 1 && number > 0)
    return atomic_fetch_add(&operations, 1) % number == 0;
  return 0;
}

static int below(const char* path) {
  return place && path && strncmp(path, place, strlen(place)) == 0;
}

static int of_place(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t got = readlink(link, path, sizeof path - 1);
  if (got <= 0)
    return 0;
  path[got] = 0;
  return below(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS_IF(concerned)                                                                        \
  do {                                                                                             \
    const int kept = errno;                                                                        \
    if (any_trouble() && (concerned) && troubled()) {                                              \
      errno = EIO;                                                                                 \
      return -1;                                                                                   \
    }                                                                                              \
    errno = kept;                                                                                  \
  } while (0)

ssize_t pwrite(int file, const void* from, size_t bytes, off_t at) {
  FAILS_IF(of_place(file));
  return REAL(pwrite)(file, from, bytes, at);
}
ssize_t pwrite64(int file, const void* from, size_t bytes, off_t at) {
  FAILS_IF(of_place(file));
  return REAL(pwrite64)(file, from, bytes, at);
}
int fsync(int file) {
  FAILS_IF(of_place(file));
  return REAL(fsync)(file);
}
int rename(const char* from, const char* to) {
  FAILS_IF(below(to));
  return REAL(rename)(from, to);
}
int mkdir(const char* path, mode_t mode) {
  FAILS_IF(below(path));
  return REAL(mkdir)(path, mode);
}
int unlink(const char* path) {
  FAILS_IF(below(path));
  return REAL(unlink)(path);
}

static mode_t mode_of(int flags, va_list more) {
  return flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (flags & O_ACCMODE)
    FAILS_IF(below(path));
  return REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (flags & O_ACCMODE)
    FAILS_IF(below(path));
  return REAL(open64)(path, flags, mode);
}

// What io_uring has done is told here, and only checkpoints are written by it.
struct io_uring;
struct cqe {
  uint64_t data;
  int32_t result;
  uint32_t flags;
};
int __io_uring_get_cqe(struct io_uring* ring, struct cqe** into, unsigned submit, unsigned wait,
                       void* mask) {
  typedef int get(struct io_uring*, struct cqe**, unsigned, unsigned, void*);
  const int answer = ((get*)dlsym(RTLD_NEXT, "__io_uring_get_cqe"))(ring, into, submit, wait, mask);
  if (answer == 0 && into && *into && any_trouble() && troubled())
    (*into)->result = -EIO;
  return answer;
}
