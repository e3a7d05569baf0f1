#include "diag/stacks/motion.hpp"

#include <algorithm>

namespace troupe::diag {

namespace {

/// Less CPU time than this is a timer or a thread that keeps time; less I/O is a line of a log.
constexpr std::uint32_t works_permille = 30;
/// What executes no Python shows no stacks here: so much is a compiler, less keeps an eye on
/// things.
constexpr std::uint32_t computes_permille = 500;
constexpr std::uint32_t nearly_all_permille = 800;
constexpr std::uint64_t io_bytes_least = 64u << 10;

std::uint32_t permille(duration used, duration between) {
  if (between <= duration::zero() || used <= duration::zero())
    return 0;
  return static_cast<std::uint32_t>(std::min<double>(
      1e6, 1000.0 * static_cast<double>(used.count()) / static_cast<double>(between.count())));
}

/// Also where it is less than before: a connection that is closed takes its count with it.
bool io_moved(std::uint64_t from, std::uint64_t to) {
  return std::max(from, to) - std::min(from, to) >= io_bytes_least;
}

const thread_look* thread_with(const std::vector<thread_look>& threads, std::int32_t id) {
  const auto found =
      std::find_if(threads.begin(), threads.end(), [id](const auto& t) { return t.id == id; });
  return found == threads.end() ? nullptr : &*found;
}

/// Of the main thread, and of those that have run since. A thread that is new says nothing: pools
/// start them, and timers.
bool stacks_moved(std::int32_t main, const std::vector<thread_look>& from,
                  const std::vector<thread_look>& to) {
  return std::any_of(to.begin(), to.end(), [&](const thread_look& t) {
    const auto* before = thread_with(from, t.id);
    return before && before->stack != t.stack && (t.id == main || t.cpu_time > before->cpu_time);
  });
}

} // namespace

void compared_looks::add(instant now, const process_look& look) {
  if (looks_ != 0 && look.started != first_.started)
    *this = {};
  ++looks_;
  if (looks_ == 1) {
    first_ = look;
    first_at_ = now;
  } else {
    stacks_differ_ |= stacks_moved(look.pid, first_.threads, look.threads);
    stacks_known_ &= !look.threads.empty() && !first_.threads.empty();
    io_moves_ |= io_moved(first_.io_bytes, look.io_bytes);
    compare_children(look, now - first_at_);
  }
  last_ = look;
  last_at_ = now;
}

void compared_looks::compare_children(const process_look& look, duration between) {
  for (const auto& child : look.children) {
    const auto before = std::find_if(first_.children.begin(), first_.children.end(),
                                     [&child](const auto& c) { return c.pid == child.pid; });
    if (before == first_.children.end()) {
      children_move_ = true; // it was born just now
      continue;
    }
    const auto used = permille(child.cpu_time - before->cpu_time, between);
    const auto wanted = permille(child.wanted - before->wanted, between);
    const bool works =
        child.threads.empty()
            ? std::max(used, wanted) >= computes_permille
            : used >= works_permille && stacks_moved(child.pid, before->threads, child.threads);
    children_move_ |= works || io_moved(before->io_bytes, child.io_bytes);
  }
}

std::uint32_t compared_looks::cpu_permille() const {
  return looks_ < 2 ? 0 : permille(last_.cpu_time - first_.cpu_time, last_at_ - first_at_);
}

bool compared_looks::wants_a_core(std::uint32_t least_permille) const {
  const auto between = last_at_ - first_at_;
  return cpu_permille() >= least_permille ||
         std::any_of(last_.threads.begin(), last_.threads.end(), [&](const thread_look& t) {
           const auto* before = thread_with(first_.threads, t.id);
           return before && permille(t.wanted - before->wanted, between) >= least_permille;
         });
}

bool compared_looks::wants_a_core() const {
  return wants_a_core(nearly_all_permille);
}

/// A stop is seen at once, and what its children still do does not end it.
motion compared_looks::moves() const {
  if (last_.state == 'T' || last_.state == 't')
    return motion::stopped;
  if (looks_ < 2)
    return motion::unknown;
  const bool works = cpu_permille() >= works_permille;
  if (io_moves_ || children_move_ || (works && stacks_differ_))
    return motion::moves;
  // A wait for a processor is no sleep.
  if (!wants_a_core(works_permille))
    return motion::sleeps;
  return stacks_known_ ? motion::spins : motion::unknown; // it works at what cannot be seen
}

} // namespace troupe::diag
