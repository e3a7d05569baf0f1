#include "actors/master/journal/compaction.hpp"

#include "actors/limits.hpp"
#include "messages/kinds.hpp"
#include "runtime/base/ids.hpp"

#include <set>

namespace troupe::actors::journal {

using namespace messages;

namespace {

/// Looks at the records from the last to the first.
class newest_first {
 public:
  // What a later record of its kind replaces says nothing. Kinds that are not named here may be a
  // later version's, and stay.
  bool says_something(const any_msg& record) {
    if (record.is<GenerationProposed>())
      return first_of_its_kind(proposed_);
    if (record.is<GenerationSealed>())
      return first_of_its_kind(sealed_);
    if (record.is<SizesChanged>())
      return first_of_its_kind(sizes_);
    if (record.is<JobOptionsTaken>())
      return first_of_its_kind(options_);
    if (record.is<RestartCounted>())
      return says_something(*record.as<RestartCounted>().read());
    return true;
  }

 private:
  static bool first_of_its_kind(bool& seen) {
    const bool first = !seen;
    seen = true;
    return first;
  }

  // The newest counted restart of all carries the job's totals, so it stays whatever the bound
  // says. Of each other node the newest one carries its sum.
  bool says_something(RestartCounted::Reader restart) {
    const bool newest = first_of_its_kind(counted_);
    // Of an older version, which is summed up by counting: each of them is needed.
    if (restart.getRestartsUsed() == 0)
      return true;
    if (nodes_.count(restart.getNode().cStr()) != 0)
      return false;
    // A node beyond the bound gets a new budget: names may be made up, and the file must stay
    // small. The oldest counted restarts are the ones that go.
    const bool remembered = newest || nodes_.size() < limits::journal_restarts_kept;
    nodes_.insert(restart.getNode().cStr());
    return remembered;
  }

  bool proposed_ = false;
  bool sealed_ = false;
  bool counted_ = false;
  bool sizes_ = false;
  bool options_ = false;
  // Those of which a newer counted restart was seen.
  std::set<node_name> nodes_;
};

} // namespace

std::vector<any_msg> compacted(const std::vector<any_msg>& history) {
  // A verdict ends the history; only that it was told may follow.
  std::vector<any_msg> counted;
  bool concluded = false;
  for (const auto& record : history) {
    if (!concluded || record.is<FarewellEnded>())
      counted.push_back(record);
    concluded = concluded || record.is<Concluded>();
  }
  // Backwards, since only what comes later can replace a record; and turned round again at the end,
  // because a counted restart must come after the seal of its generation to say that it has ended.
  newest_first judge;
  std::vector<any_msg> kept;
  for (auto at = counted.rbegin(); at != counted.rend(); ++at)
    if (judge.says_something(*at))
      kept.push_back(*at);
  return {kept.rbegin(), kept.rend()};
}

} // namespace troupe::actors::journal
