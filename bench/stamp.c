// A worker that only tells when it starts and ends, for bench/restart.py.
//
//   stamp FILE [peers-fail]
//
// Its first act is to append "start RANK NANOSECONDS". Rank 0 waits until the whole world has done
// so, lets it settle, appends "exit ..." and ends with code 7. The others wait to be ended by their
// launcher or, with peers-fail, exit on their own once rank 0 is gone, as gloo's ranks do when they
// see a connection close.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <unistd.h>

enum { settle_ms = 250, settle_spread_ms = 100, gloo_sees_loss_ms = 21 };

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void append(const char* path, const char* what, long long when) {
  char line[64];
  const char* rank = getenv("RANK");
  const int size = snprintf(line, sizeof line, "%s %s %lld\n", what, rank ? rank : "0", when);
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (fd < 0 || write(fd, line, size) != size)
    _exit(99);
  close(fd);
}

/// How many lines of the file begin with `letter`.
static int count(const char* path, char letter) {
  FILE* file = fopen(path, "r");
  char line[64];
  int lines = 0;
  while (file && fgets(line, sizeof line, file))
    lines += line[0] == letter;
  if (file)
    fclose(file);
  return lines;
}

int main(int argc, char** argv) {
  const long long started = now_ns();
  if (argc < 2)
    return 2;
  append(argv[1], "start", started);
  const char* rank = getenv("RANK");
  const char* world = getenv("WORLD_SIZE");
  const int exits = count(argv[1], 'e');
  if (!rank || atoi(rank) != 0) {
    if (argc > 2 && strcmp(argv[2], "peers-fail") == 0) {
      while (count(argv[1], 'e') == exits)
        pause_ms(1);
      pause_ms(gloo_sees_loss_ms);
      return 1;
    }
    for (;;)
      pause();
  }
  while (count(argv[1], 's') < (exits + 1) * (world ? atoi(world) : 1))
    pause_ms(1);
  // The spread keeps the failures from falling into step with a launcher that polls.
  pause_ms(settle_ms + started / 1000 % settle_spread_ms);
  append(argv[1], "exit", now_ns());
  _exit(7);
}
