#include "diag/stacks/fault_place.hpp"

#include <doctest/doctest.h>

using namespace troupe::diag;

namespace {

thread_stacks hit(std::vector<stack_frame> native, std::vector<stack_frame> python = {}) {
  thread_stacks t;
  t.native = {{"poll", "libc.so.6", 0}, {"", "/x/libtroupe_worker.so", 0}, {signal_frame, "", 0}};
  t.native.insert(t.native.end(), native.begin(), native.end());
  t.python = std::move(python);
  return t;
}

} // namespace

TEST_CASE("the function that was hit, and the innermost frame of Python") {
  CHECK(
      fault_place(hit({{"strlen", "libc.so.6", 0}, {"main", "python", 0}},
                      {{"parse", "/home/u/crash.py", 12}, {"<module>", "/home/u/crash.py", 20}})) ==
      "strlen() at crash.py:12 (parse)");
  CHECK(fault_place(hit({{"ns::f(int, std::g<(x)1>)", "libx.so", 0}})) == "ns::f()");
  CHECK(fault_place(hit({{"", "/usr/lib/libx.so.1", 0}})) == "libx.so.1");
  CHECK(fault_place(hit({}, {{"parse", "crash.py", 12}})) == "crash.py:12 (parse)");
  CHECK(fault_place(hit({})) == "");
}

TEST_CASE("of what only raises a signal the caller is told") {
  const stack_frame inner{"", "libc.so.6", 0}, raise{"raise", "libc.so.6", 0};
  const stack_frame abort{"abort", "libc.so.6", 0};
  CHECK(fault_place(hit({inner, raise, abort, {"check_shape", "libx.so", 0}})) == "check_shape()");
  CHECK(fault_place(hit({inner, raise, abort, {"", "libffi.so", 0}, {"ffi_call", "", 0}})) ==
        "abort()");
  CHECK(fault_place(hit({raise, abort})) == "abort()");
  CHECK(fault_place(hit({abort,
                         {"__gnu_cxx::__verbose_terminate_handler()", "", 0},
                         {"__cxxabiv1::__terminate(void (*)())", "", 0},
                         {"std::terminate()", "", 0},
                         {"__cxa_throw", "", 0},
                         {"c10d::watchdog(int)", "", 0}})) == "c10d::watchdog()");
}

TEST_CASE("a handler that was called by another one is not what was hit") {
  auto t = hit({{"raise", "libc.so.6", 0},
                {"faulthandler_fatal_error", "python", 0},
                {signal_frame, "libc.so.6", 0},
                {"memcpy", "libc.so.6", 0}});
  CHECK(fault_place(t) == "memcpy()");
}

TEST_CASE("without a handler's frame nothing is known of the native ones") {
  thread_stacks t;
  t.native = {{"poll", "libc.so.6", 0}};
  CHECK(fault_place(t) == "");
  t.python = {{"", "a/b.py", 3}};
  CHECK(fault_place(t) == "b.py:3 (\?\?)");
}
