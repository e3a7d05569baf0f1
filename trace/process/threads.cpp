#include "trace/process/threads.hpp"

#include "trace/limits.hpp"
#include "trace/process/bell.hpp"
#include "trace/process/poller.hpp"
#include "trace/process/reporter.hpp"
#include "trace/process/tracer.hpp"

#include <atomic>

#include <pthread.h>
#include <signal.h>

namespace troupe::trace {

namespace {

std::atomic<int> running;
std::atomic<bool> polled;
bell all_ended;

void ended() {
  running.fetch_sub(1, std::memory_order_acq_rel);
  all_ended.ring();
}

void* poll(void*) {
  pthread_setname_np(pthread_self(), "troupe-events");
  run_poller();
  polled.store(true, std::memory_order_release);
  wake_reporter();
  ended();
  return nullptr;
}

void* report(void*) {
  pthread_setname_np(pthread_self(), "troupe-metrics");
  run_reporter();
  ended();
  return nullptr;
}

bool begin_one(void* (*what)(void*)) {
  pthread_attr_t how;
  if (pthread_attr_init(&how) != 0)
    return false;
  pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&how, 512 << 10);
  pthread_t thread{};
  running.fetch_add(1);
  const auto begun = pthread_create(&thread, &how, what, nullptr) == 0;
  if (!begun)
    running.fetch_sub(1);
  pthread_attr_destroy(&how);
  return begun;
}

} // namespace

bool begin_threads() {
  sigset_t all{}, before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto begun = prepare_reporter() && begin_one(report) && begin_one(poll);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return begun;
}

bool poller_ended() {
  return polled.load(std::memory_order_acquire);
}

void end_threads() {
  the_tracer().poller_bell().ring();
  wake_reporter();
  const auto until = now_ns() + limits::end_within_ns;
  for (;;) {
    all_ended.announce();
    const auto now = now_ns();
    if (running.load(std::memory_order_acquire) == 0 || now >= until)
      break;
    all_ended.sleep(until - now);
  }
  all_ended.stay_awake();
}

} // namespace troupe::trace
