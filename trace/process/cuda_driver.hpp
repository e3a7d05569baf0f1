#pragma once

#include "trace/abi.hpp"

#include <atomic>

namespace troupe::trace {

/// Events by the driver's interface, and not by the runtime's.
///
/// The runtime remembers the last error of each thread, and the program may ask for it at any time;
/// an event of ours that fails must not be found there, nor take away what is. The driver has no
/// such memory. It also is the same library for every version of the runtime, those that are linked
/// statically among them, and its streams, contexts and events are the runtime's.
class cuda_driver {
 public:
  /// Looks for libcuda in the process; loads nothing. False: it is not there yet.
  bool ready();

  // Precondition of all: ready() was true. A result other than 0 is the driver's.

  /// Null: the thread has none.
  abi::driver_context current() const;
  abi::driver_result make_current(abi::driver_context context) const {
    return set_current_(context);
  }
  abi::driver_result create(abi::driver_event& event) const {
    return create_(&event, abi::driver_event_default);
  }
  abi::driver_result destroy(abi::driver_event event) const { return destroy_(event); }
  abi::driver_result record(abi::driver_event event, abi::cuda_stream stream) const {
    return record_(event, stream);
  }
  abi::driver_result query(abi::driver_event event) const { return query_(event); }
  /// In milliseconds. Precondition: both are over, and of one context.
  abi::driver_result elapsed(float& ms, abi::driver_event from, abi::driver_event to) const {
    return elapsed_(&ms, from, to);
  }
  /// True also where the driver cannot say: an event in a stream that captures would break it.
  bool capturing(abi::cuda_stream stream) const {
    int status = abi::capture_none;
    return is_capturing_(stream, &status) != abi::driver_success || status != abi::capture_none;
  }
  /// Asking for events is refused to all threads while one of them captures in the strictest mode,
  /// and ends that capture with an error. This thread is none that a capture needs to know of.
  void exempt_this_thread_from_captures() const;

 private:
  bool load();

  std::atomic<bool> ready_;
  std::atomic<unsigned> asked_;
  abi::driver_result (*get_current_)(abi::driver_context*);
  abi::driver_result (*set_current_)(abi::driver_context);
  abi::driver_result (*create_)(abi::driver_event*, unsigned);
  abi::driver_result (*destroy_)(abi::driver_event);
  abi::driver_result (*record_)(abi::driver_event, abi::cuda_stream);
  abi::driver_result (*query_)(abi::driver_event);
  abi::driver_result (*elapsed_)(float*, abi::driver_event, abi::driver_event);
  abi::driver_result (*is_capturing_)(abi::cuda_stream, int*);
  abi::driver_result (*exchange_mode_)(int*);
};

} // namespace troupe::trace
