// What rank_pods makes of the end of a pod.
#include "kube/limits.hpp"
#include "kube/rank_pods.hpp"

#include <algorithm>
#include <utility>

namespace troupe::kube {

rank_pods::verdict rank_pods::judged(instant now, const node_pod& pod, pod_end end,
                                     const std::string& why) {
  verdict v{verdict::what::replaced, end, false, {}, why, pod};
  if (end == pod_end::done) {
    done_ = true;
    v.is = verdict::what::done;
    return v;
  }
  const bool more = end == pod_end::out_of_memory && raise_memory(pod);
  v.is_counted = end != pod_end::taken && !more;
  if (more)
    v.reason += ", and is given more";
  if (end == pod_end::wrong_usage || (v.is_counted && restarts_ >= rules_.restarts)) {
    given_up_ = true;
    v.is = verdict::what::given_up;
    return v;
  }
  restarts_ += v.is_counted ? 1 : 0;
  ++relaunches_;
  v.wait = wait_after(end);
  not_before_ = now + v.wait;
  return v;
}

/// The first of a row is replaced at once; but a broken machine is marked first.
duration rank_pods::wait_after(pod_end end) {
  const bool waits = std::exchange(is_in_row_, true) || end == pod_end::hardware;
  return waits ? again_.next() : duration();
}

void rank_pods::forget_row() {
  is_in_row_ = false;
  again_.reset();
}

/// True: there will be more for each container that lacked it.
bool rank_pods::raise_memory(const node_pod& pod) {
  const auto may = [&](const memory_spent& m) {
    return m.bytes != 0 && raised_memory(m.bytes, rules_.memory_max) > m.bytes;
  };
  const auto& lacked = pod.out_of_memory;
  if (lacked.empty() || !std::all_of(lacked.begin(), lacked.end(), may))
    return false;
  for (const auto& m : lacked)
    memory_[m.container] = raised_memory(m.bytes, rules_.memory_max);
  return true;
}

} // namespace troupe::kube
