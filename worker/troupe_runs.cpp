#include "worker/answer.hpp"
#include "worker/read_back.hpp"
#include "worker/troupe_ckpt.h"

#include <algorithm>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

run_at_start who_of(const troupe_run& run) {
  return {run.name != nullptr ? run.name : "", generation{run.generation}};
}

} // namespace

int troupe_saves_as(const char* place, troupe_run* run, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto as = saves_as_at(place, who_of(*run));
    if (!as)
      return tl::make_unexpected(as.error());
    run->saves_as = as->value;
    return {};
  });
}

int troupe_begin_run(const char* place, troupe_run* run, uint64_t* others, size_t room, char* why,
                     size_t why_bytes) {
  return number(why, why_bytes, [&]() -> result<int> {
    origin from;
    if (run->from_generation != 0)
      from.save = save_id{generation{run->from_generation}, run->from_save};
    if (run->from_step != 0)
      from.step = run->from_step - 1;
    for (const auto* one = run->damaged; one != run->damaged + 3 * run->damaged_count; one += 3)
      (one[2] != 0 ? from.lacking : from.damaged).push_back({generation{one[0]}, one[1]});
    const auto found = begin_run_at(place, who_of(*run), generation{run->saves_as}, from);
    run->taken = !found && found.error().code == errc::overloaded ? 1 : 0;
    if (!found)
      return tl::make_unexpected(found.error());
    std::copy_n(found->begin(), std::min(found->size(), room), others);
    return static_cast<int>(found->size());
  });
}
