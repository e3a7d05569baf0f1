#include "ckpt/catalog/retention.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

namespace troupe::ckpt {

namespace {

/// The sequence from which on the rule for the latest keeps; 0 if there are not so many.
std::uint64_t oldest_of_latest(const std::vector<step_seen>& steps, std::uint64_t count) {
  std::vector<std::uint64_t> sequences;
  for (const auto& one : steps)
    if (one.state == step_state::complete)
      sequences.push_back(one.sequence);
  if (sequences.size() <= count)
    return 0;
  std::sort(sequences.begin(), sequences.end(), std::greater<>());
  return sequences[count - 1];
}

const step_seen* newest_of(const std::vector<step_seen>& steps) {
  const step_seen* newest = nullptr;
  for (const auto& one : steps)
    if (one.state == step_state::complete &&
        (!newest || std::tie(one.sequence, one.step) > std::tie(newest->sequence, newest->step)))
      newest = &one;
  return newest;
}

} // namespace

const char* to_string(step_state s) {
  switch (s) {
  case step_state::writing:
    return "writing";
  case step_state::incomplete:
    return "incomplete";
  case step_state::complete:
    return "complete";
  case step_state::damaged:
    return "damaged";
  }
  return "?";
}

std::vector<std::uint64_t> removable(const std::vector<step_seen>& steps, retention keep) {
  const step_seen* newest = newest_of(steps);
  if (newest == nullptr)
    return {};
  const bool keeps_all = keep.keep_latest == 0 && keep.keep_every == 0;
  // The newest is kept by any rule.
  const auto from = oldest_of_latest(steps, std::max<std::uint64_t>(keep.keep_latest, 1));
  std::vector<std::uint64_t> going;
  for (const auto& one : steps) {
    const bool periodic = keep.keep_every != 0 && one.step % keep.keep_every == 0;
    const bool left = one.state == step_state::incomplete && one.step < newest->step;
    const bool old = one.state == step_state::complete && !keeps_all && one.sequence < from &&
                     one.sequence < newest->sequence && !periodic;
    if (left || old)
      going.push_back(one.step);
  }
  return going;
}

} // namespace troupe::ckpt
