#pragma once

#include "diag/process_look.hpp"
#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>

namespace troupe::diag {

/// Whether a process moves though it reports nothing: several looks at it, compared.
///
/// A process in a long evaluation, a checkpoint by other means or a first compilation reports
/// nothing either. It differs from one that hangs in that its stacks change, or that bytes flow,
/// also in the children that work for it.
///
/// A training process is full of threads that have nothing to do with its training: one reads
/// gauges, one uploads logs, one starts a program every second. They go on beside a deadlock. So
/// only two threads decide, the main one and the script's, and whatever these two wait for:
///
///     runs, other functions than before ............... moves
///     runs, the same functions, another place in them .. spins: a loop of Python
///     runs, in one call of C ........................... works: how far it is cannot be seen
///     is ready, and has no processor ................... starves
///     waits for a socket, a timer, a child ............. works, or moves if bytes flow
///     waits for a thread or process by Python's means .. as whatever may let it go on
///     waits for a lock ................................. sleeps, or works if native threads
///     compute
///
/// It cannot be known which thread or process sets an event, notifies a condition or fills a queue.
/// Those that are there for it count as the script's thread would in their place: a pool's threads,
/// and children. Any other thread that is not plainly idle only leaves it open (`awaits`). What
/// holds a lock that the script takes itself is not asked for.
///
/// A thread that is ready to run in each look wants all of a core, whatever the kernel has counted:
/// it counts a wait for a processor when that ends, and no time that a host takes from a virtual
/// one.
///
/// Where Python's threads cannot be read, the process as a whole decides.
class compared_looks {
 public:
  /// Each is compared with the first: slow motion is seen in the sum. A look at another process
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
  /// A thread of it, whichever, was ready to run for a good part of the time and had no processor:
  /// its silence may be its machine's.
  bool lacks_a_core() const;
  /// Its script is over, and neither it nor what it waits for does anything.
  bool ended() const;
  /// Asleep in a lock while no thread or child of it is at work or waits for anything outside.
  bool locked() const;
  /// …which is a wait for another thread by Python's means: only Python could end it.
  bool deadlocked() const;
  const process_look& last() const { return last_; }

 private:
  /// One thread from the first look to the last.
  struct thread_change {
    std::uint32_t ran = 0, wanted = 0; ///< thousandths of a core
    bool elsewhere = false;            ///< in other functions
  };
  std::vector<std::int32_t> deciding(const process_look& look) const;
  bool decides(std::int32_t thread, const process_look& look) const;
  thread_change change_of(const thread_look& before, const thread_look& now,
                          duration between) const;
  /// Ascending: what counts more is more.
  enum class effort : std::uint8_t {
    none,  ///< idle
    maybe, ///< it waits for something outside, or works a little, and is known for nothing
    works, ///< it is at work, and how far it is cannot be seen
    moves, ///< …can be seen
  };
  const thread_look* decisive(const process_look& look) const;
  /// The decisive one as it was last met asleep.
  const thread_look* sleeper() const;
  bool is_woken() const;
  effort effort_of(const thread_look& before, const thread_look& now, duration between) const;
  effort effort_of(const child_look& before, const child_look& now, duration between) const;
  void keep_ready(const process_look& look);
  void compare_threads(const process_look& look, duration between);
  void compare_others(const process_look& look, duration between);
  void compare_children(const process_look& look, duration between);
  void compare_child(const child_look& child, const process_look& look, duration between);
  bool child_counts(const child_look& child, const process_look& look) const;
  /// The largest share of a core that a deciding thread (without any: the process) wanted and got.
  thread_change decided() const;
  std::uint32_t native_permille() const;
  motion asleep() const;

  std::uint32_t looks_ = 0;
  instant first_at_;
  instant last_at_;
  process_look first_; ///< what is ready in it has been so in each look since
  process_look last_;
  bool goes_elsewhere_ = false; ///< a deciding thread, in what it executes
  bool position_moves_ = false; ///< …within its innermost function
  bool stacks_known_ = true;
  bool io_moves_ = false;
  bool children_move_ = false;
  effort awaited_ = effort::none; ///< by the threads and children that a deciding thread waits for
  effort beside_ = effort::none;  ///< by all of them
};

/// It goes on neither by itself nor through a child.
constexpr bool stands(motion m) {
  return m == motion::sleeps || m == motion::spins || m == motion::stopped || m == motion::awaits;
}

} // namespace troupe::diag
