#include "actors/node_supervisor/hang_watchdog/motion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace troupe::actors {

namespace {

/// Less CPU time than this is a timer or a thread that keeps time; less I/O is a line of a log.
constexpr std::uint32_t works_permille = 30;
constexpr std::uint64_t io_bytes_least = 64u << 10;

std::uint32_t permille(duration used, duration between) {
  if (between <= duration::zero() || used <= duration::zero())
    return 0;
  return static_cast<std::uint32_t>(std::min<double>(
      1e6, 1000.0 * static_cast<double>(used.count()) / static_cast<double>(between.count())));
}

/// "data loader's worker 7", where that is its role.
std::string part_named(const std::string& role) {
  const std::string loader = "data loader worker";
  return role.rfind(loader, 0) == 0 ? "data loader's worker" + role.substr(loader.size()) : role;
}

bool io_moved(std::uint64_t from, std::uint64_t to) {
  return to > from && to - from >= io_bytes_least;
}

} // namespace

void motion::begin() {
  *this = {};
}

/// Each look is compared with the first: what is slow is seen in the sum.
void motion::add(instant now, const diag::process_look& look) {
  ++looks_;
  if (looks_ == 1) {
    first_ = look;
    first_at_ = now;
  } else {
    // A fingerprint of 0 says that the stacks could not be read.
    stacks_differ_ |= look.stacks != first_.stacks && look.stacks != 0 && first_.stacks != 0;
    stacks_known_ &= look.stacks != 0 && first_.stacks != 0;
    io_moves_ |= io_moved(first_.io_bytes, look.io_bytes);
    compare_children(look, now - first_at_);
  }
  last_ = look;
  last_at_ = now;
}

void motion::compare_children(const diag::process_look& look, duration between) {
  for (const auto& child : look.children) {
    const auto before = std::find_if(first_.children.begin(), first_.children.end(),
                                     [&child](const auto& c) { return c.pid == child.pid; });
    if (before == first_.children.end()) {
      children_move_ = true; // it was born just now
      continue;
    }
    const bool works = permille(child.cpu_time - before->cpu_time, between) >= works_permille;
    children_move_ |=
        io_moved(before->io_bytes, child.io_bytes) || (works && child.stacks != before->stacks);
  }
}

std::uint32_t motion::cpu_permille() const {
  return looks_ < 2 ? 0 : permille(last_.cpu_time - first_.cpu_time, last_at_ - first_at_);
}

/// A stack that differs without CPU time is a timer's, and is no motion.
motion::kind motion::how() const {
  if (looks_ < 2)
    return last_.state == 'T' || last_.state == 't' ? kind::stands : kind::unknown;
  const bool works = cpu_permille() >= works_permille;
  if (io_moves_ || children_move_ || (works && stacks_differ_))
    return kind::moves;
  // It works, and at what cannot be seen.
  return works && !stacks_known_ ? kind::unknown : kind::stands;
}

bool motion::in_debugger() const {
  for (const auto* name : {"pdb.py", "bdb.py", "debugpy", "pydevd", "ipdb"})
    if (last_.place.find(name) != std::string::npos)
      return true;
  return false;
}

/// The child for which it waits: one that is stopped, or that the kernel holds, or that is where
/// the others are not. Loaders that have nothing to do all wait in the same place.
const diag::child_look* motion::keeper() const {
  std::map<std::string, std::size_t> places;
  for (const auto& c : last_.children)
    if (!c.role.empty())
      ++places[c.place];
  const diag::child_look* found = nullptr;
  const auto weight = [&places](const diag::child_look& c) {
    if (c.state == 'T' || c.state == 't')
      return 4;
    if (c.state == 'D')
      return 3;
    if (c.state == 'Z')
      return 2;
    return !c.place.empty() && places[c.place] == 1 && (places.size() > 1) ? 1 : 0;
  };
  for (const auto& c : last_.children)
    if (!c.role.empty() && weight(c) > (found ? weight(*found) : 0))
      found = &c;
  if (!found && last_.children.size() == 1 && !last_.children.front().role.empty())
    found = &last_.children.front();
  return found;
}

std::string motion::place(bool waits_for_input) const {
  const auto* child = waits_for_input ? keeper() : nullptr;
  if (!child)
    return last_.place;
  if (child->state == 'T' || child->state == 't')
    return fmt::format("a wait for its {}, which is stopped (kill -CONT {} lets it go on)",
                       part_named(child->role), child->pid);
  if (child->state == 'Z')
    return fmt::format("a wait for its {}, which has ended", part_named(child->role));
  return child->place.empty() ? fmt::format("a wait for its {}", part_named(child->role))
                              : fmt::format("{} of its {}", child->place, part_named(child->role));
}

} // namespace troupe::actors
