#include "ckpt/catalog/retention.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::ckpt {

namespace {

bool newer(const step_seen& a, const step_seen& b) {
  return std::tie(a.id, a.step) > std::tie(b.id, b.step);
}

/// What all nodes have completed as well, as far as a verdict has said so.
std::vector<step_seen> counted_up_to(const std::optional<save_id>& committed,
                                     const std::vector<step_seen>& steps) {
  std::vector<step_seen> complete;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(complete), [&](const step_seen& s) {
    return s.of_line && s.state == step_state::complete && committed &&
           (s.confirmed || s.id == *committed) && !(*committed < s.id);
  });
  return complete;
}

} // namespace

const char* to_string(step_state s) {
  switch (s) {
  case step_state::incomplete:
    return "incomplete";
  case step_state::complete:
    return "complete";
  case step_state::damaged:
    return "damaged";
  case step_state::unreadable:
    return "unreadable";
  }
  return "?";
}

bool keeps_all(retention keep) {
  return keep.keep_latest == 0 && keep.keep_every == 0;
}

std::vector<std::uint64_t> removable(const std::vector<step_seen>& steps, retention keep,
                                     const retention_point& now) {
  const auto known = counted_up_to(now.committed, steps);
  // The newest is kept by any rule.
  const auto latest = std::max<std::uint64_t>(keep.keep_latest, 1);
  const auto is_old = [&](const step_seen& one) {
    const auto newer_ones = std::count_if(known.begin(), known.end(),
                                          [&one](const step_seen& s) { return newer(s, one); });
    const bool periodic = keep.keep_every != 0 && one.step % keep.keep_every == 0;
    return static_cast<std::uint64_t>(newer_ones) >= latest && !periodic;
  };
  std::vector<std::uint64_t> going;
  for (const auto& one : steps) {
    const bool left = one.state == step_state::incomplete && one.id < now.open_from;
    const bool may_be_old = one.state == step_state::complete && now.committed &&
                            !(*now.committed < one.id) && !keeps_all(keep);
    if (one.of_line && (left || (may_be_old && is_old(one))))
      going.push_back(one.step);
  }
  return going;
}

} // namespace troupe::ckpt
