#include "actors/master/membership/job_options.hpp"

#include "messages/limits.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// A user who has ended all nodes may also have left out a word.
job_options::opinion job_options::judge(const job_words& said, bool is_alone) const {
  auto found = compared(said, known_.taken);
  if (!is_alone || !known_.acceptable || !known_.taken)
    return found;
  const bool drops_some = std::any_of(known_.taken->begin(), known_.taken->end(),
                                      [&said](const auto& word) { return !find(said, word.name); });
  if (!drops_some && std::holds_alternative<fits>(found))
    return found;
  auto anew = compared(said, std::nullopt);
  return std::holds_alternative<fits>(anew) ? is_first{} : anew;
}

namespace {

std::string give_all_the_same(const job_word& said, const std::string& whose,
                              const std::string& known) {
  return fmt::format("it was told {}, and {} {}: give all nodes the same", said.in_words(), whose,
                     known);
}

/// Of a word that does not agree with `said`.
std::string in_contrast(const job_word& said, const job_word& known) {
  return said.value == known.value ? "a file with other contents" : known.in_words();
}

} // namespace

job_options::opinion job_options::compared(const job_words& said,
                                           const std::optional<job_words>& taken) const {
  if (!within_bounds(said))
    return contradicts{fmt::format("it says more of the job than {} options of {} bytes in all, "
                                   "files included",
                                   limits::job_options_max, limits::job_option_content_max)};
  fits ok;
  job_words further;
  for (const auto& word : said) {
    const auto* own = find(known_.own, word.name);
    const auto* first = own || !taken ? nullptr : find(*taken, word.name);
    if (own && known_.acceptable) {
      if (!agree(*own, word))
        ok.otherwise.push_back({word, *own});
    } else if (!own && !taken) {
      further.push_back(word);
    } else if (const auto* known = own ? own : first; !known) {
      return contradicts{give_all_the_same(word, first_node(), "was not")};
    } else if (!agree(*known, word)) {
      return contradicts{give_all_the_same(word, first_node(), in_contrast(word, *known))};
    }
  }
  if (further.empty()) {
    for (const auto* words : {&known_.own, taken ? &*taken : nullptr})
      for (std::size_t i = 0; words && i < words->size(); ++i)
        if ((*words)[i].nodes_act && !find(said, (*words)[i].name))
          ok.not_told.push_back((*words)[i]);
    return ok;
  }
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
