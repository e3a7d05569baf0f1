#include "runtime/os/stacks/motion_core.hpp"

#include <algorithm>
#include <map>

namespace troupe::os {

namespace {

/// Of all threads, in no order that the list of threads has: new ones come first in it.
bool is_same_place(const motion_sample& a, const motion_sample& b) {
  if (a.threads.size() != b.threads.size())
    return false;
  std::map<std::uint64_t, const python_thread*> there;
  for (const auto& t : b.threads)
    there.emplace(t.handle, &t);
  const auto is_same_frame = [](const diag::stack_frame& x, const diag::stack_frame& y) {
    return x.function == y.function && x.source == y.source;
  };
  return std::all_of(a.threads.begin(), a.threads.end(), [&](const python_thread& t) {
    const auto other = there.find(t.handle);
    return other != there.end() &&
           std::equal(t.frames.begin(), t.frames.end(), other->second->frames.begin(),
                      other->second->frames.end(), is_same_frame);
  });
}

} // namespace

std::string_view words_of(motion m) {
  switch (m) {
  case motion::unknown:
    return "it is not known whether it moves";
  case motion::moves:
    return "it moves";
  case motion::sleeps:
    return "it stands still and sleeps";
  case motion::spins:
    return "it stands still and uses a processor";
  case motion::stopped:
    return "it is stopped";
  }
  return "";
}

motion motion_of(const std::vector<motion_sample>& samples, duration apart) {
  if (samples.size() < 2)
    return motion::unknown;
  const auto& first = samples.front();
  const auto& last = samples.back();
  if (last.state == 'T' || last.state == 't')
    return motion::stopped;
  bool has_python = false;
  for (const auto& s : samples) {
    if (s.started != first.started)
      return motion::unknown;
    has_python = has_python || !s.threads.empty();
    if (s.bytes != first.bytes || !is_same_place(s, first))
      return motion::moves;
  }
  // On a crowded machine one that spins has little of a processor; one that sleeps has none.
  constexpr int least_part = 10;
  const auto within = apart * static_cast<int>(samples.size() - 1);
  const bool always_runs =
      std::all_of(samples.begin(), samples.end(), [](const auto& s) { return s.state == 'R'; });
  if (!always_runs && (last.cpu - first.cpu) * least_part < within)
    return motion::sleeps;
  return has_python ? motion::spins : motion::unknown; // else it computes, and where is not known
}

} // namespace troupe::os
