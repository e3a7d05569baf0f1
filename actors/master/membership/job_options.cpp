#include "actors/master/membership/job_options.hpp"

#include "messages/limits.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

using messages::job_word;
using messages::job_words;

job_options::job_options(job_options_known known) : known_(std::move(known)) {
  if (!known_.acceptable && !known_.taken)
    known_.taken.emplace();
}

std::string job_options::first_node() const {
  return known_.taken_from.empty() ? "the node that runs the job's master"
                                   : fmt::format("node {}, the job's first,", known_.taken_from);
}

job_options::opinion job_options::judge(const job_words& said, bool is_alone) const {
  auto found = compared(said, known_.taken);
  const bool may_take = is_alone && known_.acceptable;
  return may_take && std::holds_alternative<contradicts>(found) ? compared(said, std::nullopt)
                                                                : found;
}

job_options::opinion job_options::compared(const job_words& said,
                                           const std::optional<job_words>& taken) const {
  if (!within_bounds(said))
    return contradicts{fmt::format("it says more of the job than {} options of {} bytes in all, "
                                   "files included",
                                   limits::job_options_max, limits::job_option_content_max)};
  fits ok;
  job_words further;
  for (const auto& word : said) {
    if (const auto* own = find(known_.own, word.name)) {
      if (agree(*own, word))
        continue;
      if (!known_.acceptable)
        return contradicts{fmt::format("it was told {}, and {} {}: give all nodes the same",
                                       word.in_words(), first_node(), own->in_words())};
      ok.without_effect.push_back({word, *own});
      continue;
    }
    if (!taken) {
      further.push_back(word);
      continue;
    }
    const auto* first = find(*taken, word.name);
    if (!first)
      return contradicts{fmt::format("it was told {}, and {} was not: give all nodes the same",
                                     word.in_words(), first_node())};
    if (!agree(*first, word))
      return contradicts{fmt::format("it was told {}, and {} {}: give all nodes the same",
                                     word.in_words(), first_node(), first->in_words())};
  }
  if (further.empty())
    return ok;
  if (const auto accepted = known_.acceptable(further); !accepted)
    return contradicts{accepted.error().what};
  return is_first{std::move(further)};
}

void job_options::settle(const std::string& node) {
  if (known_.taken)
    return;
  known_.taken.emplace();
  known_.taken_from = node;
}

void job_options::take(const std::string& node, job_words words) {
  invariant(!is_taking_, "the job's options are taken from one node");
  known_.taken = std::move(words);
  known_.taken_from = node;
  is_taking_ = true;
}

} // namespace troupe::actors
