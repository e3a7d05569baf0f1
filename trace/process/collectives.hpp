#pragma once

#include "trace/abi.hpp"
#include "trace/core/operation.hpp"
#include "trace/process/tracer.hpp"

#include <array>
#include <cstdint>

namespace troupe::trace {

/// One call of NCCL.
struct collective_call {
  diag::collective kind;
  std::uint64_t count;
  int type; ///< NCCL's
  abi::nccl_communicator communicator;
  abi::cuda_stream stream;
};

/// One collective, or what a group launches for one communicator and stream, from the first of its
/// calls until it is handed over.
class launched_collective {
 public:
  /// Records the first event. `communicators::none` as its row: nothing will be told of it.
  void begin(const collective_call& call, std::size_t row);
  bool is(std::size_t row, abi::cuda_stream stream) const {
    return row_ == row && stream_ == stream;
  }
  /// A further call of the group.
  void add(const collective_call& call);
  /// NCCL is about to launch it: it has its place in the order of the communicator.
  void enter();
  /// NCCL has answered so: 0, or 7 for "in progress", or an error.
  void launched(int result);

 private:
  void add_bytes(const collective_call& call);

  operation what_;
  std::size_t row_ = communicators::none;
  abi::cuda_stream stream_ = nullptr;
  std::uint32_t pair_ = event_pool::none;
  std::uint64_t sends_ = 0, sent_ = 0, received_ = 0;
  bool capturing_ = false;
};

/// The calls between ncclGroupStart and ncclGroupEnd, which a thread makes.
///
/// Within a group, NCCL only notes what it is asked; all of it is launched by the end of the
/// outermost group, as one piece of work for each communicator and stream. So each of those is one
/// operation: its first event is recorded when the first of its calls is made, its second after the
/// end of the group.
class collective_group {
 public:
  bool open() const { return depth_ > 0; }
  void enter() { ++depth_; }
  /// True: this was the outermost.
  bool leave() {
    depth_ = depth_ > 0 ? depth_ - 1 : 0;
    return depth_ == 0;
  }
  void add(const collective_call& call, std::size_t row);
  /// Just before the outermost end.
  void launching();
  /// The end has returned so.
  void launched(int result);

 private:
  int depth_;
  std::size_t used_;
  std::array<launched_collective, limits::group_max> members_;
};

/// The row of the communicator; one that was made where nothing was intercepted gets one, without a
/// name. `communicators::none`: there are too many.
std::size_t row_of(abi::nccl_communicator communicator, const void* caller);
/// `name` 0, `members` 0: unknown (yet).
void add_communicator(abi::nccl_communicator communicator, std::uint64_t name,
                      std::uint32_t members);
void remove_communicator(abi::nccl_communicator communicator);
/// The name of what is made of this communicator now; 0: unknown.
std::uint64_t name_of_next_part(abi::nccl_communicator parent, std::int64_t color);

} // namespace troupe::trace
