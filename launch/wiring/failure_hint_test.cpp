#include "launch/wiring/failure_hint.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace troupe::launch;

namespace {

std::string begins(const std::string& hint) {
  return hint.substr(0, hint.find(':'));
}

worker_failure with(const std::string& traceback, const std::string& tail, int exit_code = 1) {
  worker_failure f;
  f.exit_code = exit_code;
  f.traceback = traceback;
  f.log_tail = tail;
  return f;
}

} // namespace

TEST_CASE("a known cause comes with what to do, wherever it is written") {
  CHECK(begins(hint_for(with("ModuleNotFoundError: No module named 'x'", ""))) ==
        "the Python in the launcher's first line lacks it");
  CHECK(begins(hint_for(with("", "torch.OutOfMemoryError: CUDA out of memory. Tried"))) ==
        "the accelerator's memory is full");
  CHECK(begins(hint_for(with("OSError: [Errno 28] No space left on device", ""))) ==
        "a disk, or /dev/shm, is full");
  CHECK(begins(hint_for(with("", "RuntimeError: [Errno 98] Address already in use"))) ==
        "another process has the port");
}

TEST_CASE("what names a cause goes before what follows from it") {
  CHECK(begins(hint_for(with("", "Connection reset by peer\nCUDA out of memory"))) ==
        "the accelerator's memory is full");
  CHECK(begins(hint_for(with("", "Connection reset by peer"))) ==
        "the connection to another rank broke");
}

TEST_CASE("a signal is a cause if no text tells a better one") {
  CHECK(begins(hint_for(with("", "", -SIGBUS))) == "often /dev/shm is full");
  CHECK(begins(hint_for(with("", "No space left on device", -SIGBUS))) ==
        "a disk, or /dev/shm, is full");
  // By itself SIGKILL says nothing; the kernel's count of kills does.
  CHECK(hint_for(with("", "CUDA out of memory", -SIGKILL)) == "");
  auto killed = with("", "", -SIGKILL);
  killed.exit_class = "out of memory";
  CHECK(begins(hint_for(killed)) == "the kernel killed it for want of memory");
}

TEST_CASE("of an unknown cause nothing is guessed") {
  CHECK(hint_for(with("ValueError: no", "all is well")) == "");
}
