// What an API server of Kubernetes may answer: any bytes under any status, in any order.
//
// Whatever it says, each call is answered once, at most one is under way, a machine is asked for a
// bounded number of times, and each node is told of once: marked or not.

#include "kube/limits.hpp"
#include "kube/machine_marks_core.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

using namespace troupe;
using namespace troupe::kube;

namespace {

/// Takes the input apart.
struct bytes {
  const std::uint8_t* at;
  const std::uint8_t* end;

  std::uint8_t next() { return at < end ? *at++ : 0; }
  std::string text() {
    const auto size = std::min<std::ptrdiff_t>(next() * 4, end - at);
    std::string t(at, at + size);
    at += size;
    return t;
  }
};

void demand(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bytes in{data, data + size};
  static constexpr unsigned statuses[] = {200, 200, 200, 0, 401, 403, 404, 409, 422, 429, 503};
  machine_marks_core core(
      {"jobs", "pod", "job", in.next() % 2 == 0 ? machine_mark::taint : machine_mark::cordon, 1});
  instant now{};
  std::uint64_t open = 0; // the call that is under way
  std::size_t told = 0, calls = 0;
  const auto take = [&](const machine_marks_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* c = std::get_if<machine_marks_core::call>(&e)) {
        demand(open == 0 && c->what.target.rfind("/api/v1/", 0) == 0);
        open = c->number;
        ++calls;
      } else {
        ++told;
      }
  };
  take(core.mark_faulty(now, "a", "10.0.0.1", "broken"));
  take(core.mark_faulty(now, "b", "10.0.0.2", "broken"));
  while (core.is_busy()) {
    demand(calls < 2 * 3 * limits::mark_attempts_max);
    if (open != 0) {
      api_answer a{statuses[in.next() % std::size(statuses)], in.text(), {}};
      take(core.answered(now, std::exchange(open, 0), a));
    } else {
      const auto at = core.next_wakeup();
      demand(at && *at > now);
      now = *at;
      take(core.tick(now));
    }
  }
  demand(told == 2 && !core.next_wakeup());
  return 0;
}
