#pragma once

#include "diag/process_look.hpp"
#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>

namespace troupe::diag {

/// Whether a process moves though it reports nothing: several looks at it, compared.
///
/// A process in a long evaluation, a checkpoint by other means or a first compilation reports
/// nothing either. What tells it from one that hangs is that its stacks change, or that bytes flow,
/// also in the children that work for it. A loop that never ends uses all of a core in the same
/// functions: that is no motion. Nor is a timer's thread, whose stack changes and which uses
/// nothing.
class compared_looks {
 public:
  /// Each is compared with the first: what is slow is seen in the sum. A look at another process
  /// that has the same number begins anew.
  void add(instant now, const process_look& look);

  bool has_any() const { return looks_ != 0; }
  motion moves() const;
  bool io_moves() const { return io_moves_; }
  /// CPU time of all its threads from the first look to the last, of one core.
  std::uint32_t cpu_permille() const;
  /// One of its threads ran or waited for a processor nearly all the time: a loop does, on an
  /// overloaded machine as well.
  bool wants_a_core() const;
  const process_look& last() const { return last_; }

 private:
  void compare_children(const process_look& look, duration between);
  bool wants_a_core(std::uint32_t least_permille) const;

  std::uint32_t looks_ = 0;
  instant first_at_;
  instant last_at_;
  process_look first_;
  process_look last_;
  bool stacks_differ_ = false;
  bool stacks_known_ = true;
  bool io_moves_ = false;
  bool children_move_ = false;
};

/// It goes on neither by itself nor through a child.
constexpr bool stands(motion m) {
  return m == motion::sleeps || m == motion::spins || m == motion::stopped;
}

} // namespace troupe::diag
