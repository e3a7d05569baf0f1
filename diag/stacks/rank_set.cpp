#include "diag/stacks/rank_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe::diag {

namespace {

/// Appends a run that begins where the newest does, or behind that.
void join(std::vector<rank_set::run>& runs, rank_set::run next) {
  if (!runs.empty() && next.first <= std::uint64_t{runs.back().last} + 1)
    runs.back().last = std::max(runs.back().last, next.last);
  else
    runs.push_back(next);
}

} // namespace

rank_set rank_set::below(std::uint32_t size) {
  rank_set all;
  if (size > 0)
    all.runs_.push_back({0, size - 1});
  return all;
}

bool rank_set::append(run next) {
  if (next.first > next.last)
    return false;
  if (!runs_.empty() && next.first <= std::uint64_t{runs_.back().last} + 1)
    return false;
  runs_.push_back(next);
  return true;
}

void rank_set::add_elsewhere(std::uint32_t rank) {
  const auto at = std::upper_bound(runs_.begin(), runs_.end(), rank,
                                   [](std::uint32_t r, const run& of) { return r < of.first; });
  if (at != runs_.begin() && rank <= std::prev(at)->last)
    return;
  const bool after = at != runs_.begin() && std::prev(at)->last + 1 == rank;
  const bool before = at != runs_.end() && rank + 1 == at->first;
  if (after && before) {
    std::prev(at)->last = at->last;
    runs_.erase(at);
  } else if (after) {
    std::prev(at)->last = rank;
  } else if (before) {
    at->first = rank;
  } else {
    runs_.insert(at, run{rank, rank});
  }
}

void rank_set::add(const rank_set& others) {
  if (others.runs_.empty() || runs_ == others.runs_)
    return;
  std::vector<run> both;
  both.reserve(runs_.size() + others.runs_.size());
  auto a = runs_.begin();
  auto b = others.runs_.begin();
  while (a != runs_.end() || b != others.runs_.end()) {
    const bool mine = b == others.runs_.end() || (a != runs_.end() && a->first <= b->first);
    join(both, mine ? *a++ : *b++);
  }
  runs_ = std::move(both);
}

bool rank_set::has(std::uint32_t rank) const {
  const auto at = std::upper_bound(runs_.begin(), runs_.end(), rank,
                                   [](std::uint32_t r, const run& of) { return r < of.first; });
  return at != runs_.begin() && rank <= std::prev(at)->last;
}

std::size_t rank_set::size() const {
  std::size_t sum = 0;
  for (const auto& r : runs_)
    sum += std::size_t{r.last} - r.first + 1;
  return sum;
}

rank_set rank_set::missing_of(const rank_set& all) const {
  rank_set absent;
  auto at = runs_.begin();
  for (const auto& whole : all.runs_) {
    std::uint64_t from = whole.first;
    while (at != runs_.end() && at->last < from)
      ++at;
    for (auto in = at; in != runs_.end() && in->first <= whole.last; ++in) {
      if (in->first > from)
        absent.runs_.push_back({static_cast<std::uint32_t>(from), in->first - 1});
      from = std::uint64_t{in->last} + 1;
    }
    if (from <= whole.last)
      absent.runs_.push_back({static_cast<std::uint32_t>(from), whole.last});
  }
  return absent;
}

std::string rank_set::text(std::size_t runs_max) const {
  std::string out;
  for (const auto& r : runs_) {
    if (runs_max-- == 0)
      return out + "/...";
    if (!out.empty())
      out += '/';
    out += r.first == r.last ? fmt::format("{}", r.first) : fmt::format("{}-{}", r.first, r.last);
  }
  return out;
}

} // namespace troupe::diag
