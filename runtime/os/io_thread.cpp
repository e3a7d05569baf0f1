#include "runtime/os/io_thread.hpp"

#include "runtime/base/invariant.hpp"

#include <pthread.h>
#include <signal.h>

namespace troupe::os {

namespace {

/// Starts a thread with all signals blocked. The mask is set before the thread exists, so that
/// there is no moment in which it could take a signal meant for the main thread.
template<class Body>
std::thread start_without_signals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  invariant(pthread_sigmask(SIG_SETMASK, &all, &before) == 0, "the signal mask cannot be set");
  std::thread started(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

} // namespace

io_thread::io_thread(const char* name)
    : stays_(context_.get_executor()), thread_(start_without_signals([this, name] {
        pthread_setname_np(pthread_self(), name);
        context_.run();
      })) {}

io_thread::~io_thread() {
  invariant(!is_current(), "the I/O thread cannot end itself");
  context_.stop();
  thread_.join();
}

} // namespace troupe::os
