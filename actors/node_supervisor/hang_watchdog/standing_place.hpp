#pragma once

#include "diag/progress_host.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// Whether a process moves though it reports nothing: several looks at it, compared.
///
/// A process in a long evaluation, a checkpoint by other means or a first compilation reports
/// nothing either. What tells it from one that hangs is that its stacks change, or that bytes flow,
/// also in the children that work for it. A loop that never ends uses all of a core in the same
/// functions: that is no motion.
class motion {
 public:
  enum class kind : std::uint8_t { unknown, moves, stands };

  void begin();
  void add(instant now, const diag::process_look& look);

  bool looked_at() const { return looks_ != 0; }
  kind how() const;
  char state() const { return last_.state; }
  bool traced() const { return last_.traced || in_debugger(); }
  bool io_moves() const { return io_moves_; }
  std::uint32_t cpu_permille() const;
  /// Where it is, in words: its own place, or that of the child which keeps it there.
  std::string place(bool waits_for_input) const;
  const diag::process_look& last() const { return last_; }

 private:
  bool in_debugger() const;
  const diag::child_look* keeper() const;
  void compare_children(const diag::process_look& look, duration between);

  std::uint32_t looks_ = 0;
  instant first_at_;
  instant last_at_;
  diag::process_look first_;
  diag::process_look last_;
  bool stacks_differ_ = false;
  bool stacks_known_ = true;
  bool io_moves_ = false;
  bool children_move_ = false;
};

} // namespace troupe::actors
