#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The packets of the conversation `worker`, as the process writes and reads them; see
/// worker.capnp. Pure.
///
/// Only Cap'n Proto's core is used here, not the part that knows schemas at run time: every
/// training process loads this.
namespace troupe::messages {

using packet = std::string;

struct worker_hello {
  std::uint32_t rank = 0, local_rank = 0, pid = 0;
  std::uint64_t generation = 0;
  std::uint64_t feeds = 0;
  std::string version, python, torch;
  std::int32_t stacks_signal = 0;
  std::uint64_t first_step_ns = 0;
};

/// A FatalSignal that was made beforehand. A handler of signals may allocate nothing: it puts its
/// numbers where they belong, each four bytes as the machine has them, and sends the rest as it is.
struct fatal_signal_frame {
  packet bytes;
  std::size_t signal_at = 0, thread_at = 0;
};

class worker_frames {
 public:
  worker_frames(std::uint32_t rank, std::uint64_t generation);

  packet said(const worker_hello& what);
  packet first_step(std::uint64_t at_ns, std::uint64_t since_failure_ns);
  /// `whole` from `at` on, as much as one packet takes.
  packet flight_record(std::uint64_t correlation, std::string_view whole, std::size_t at);
  packet no_flight_record(std::uint64_t correlation, std::string_view why);
  fatal_signal_frame fatal_signal();

 private:
  template<class T, class Fill>
  packet write(std::uint64_t correlation, Fill&& fill);

  std::string sender_;
  std::uint64_t generation_;
  std::uint64_t sequence_ = 0;
};

/// What a supervisor says.
struct heard_request {
  bool is_go_on = false;
  /// Of a FlightRecordRequest.
  std::optional<std::uint64_t> flight_record;
};
/// Empty for any other bytes.
heard_request heard(const void* bytes, std::size_t size);

} // namespace troupe::messages
