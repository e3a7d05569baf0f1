#include "actors/master/diagnosis/straggler_score.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors {

namespace {

/// Shorter differences are the machine's own noise.
constexpr double least_difference = 0.003;
/// Times the usual distance of a report from the mean: of 10,000 ranks in a day of reports none is
/// so far off by chance.
constexpr double scatter_factor = 6;
constexpr std::uint32_t score_learnt_after = 6;
constexpr std::uint32_t learns_within = 32;
/// Rare things scatter, too.
constexpr std::uint32_t scatter_learnt_within = 512;
/// Reports in a row, of a rank that is much slower than the others, or somewhat: one may hold a
/// single long step, and two may do so by chance.
constexpr std::uint32_t reports_least = 2, reports_somewhat = 3;
constexpr double much_slower = 1.8;
constexpr std::uint32_t over_after = 3;
/// From so shares_median_from ranks on the median is not made anew for each report.
constexpr std::size_t shares_median_from = 64;
constexpr auto median_again_after = 200ms;
constexpr double deviations_of_median_distance = 1.48;

double seconds_in(duration d) {
  return std::chrono::duration<double>(d).count();
}
duration duration_of_seconds(double s) {
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(s));
}

double middle_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

void straggler_score::world(std::uint32_t size) {
  ranks_.assign(size, {});
  slow_ = 0;
  all_at_.reset();
}

straggler_score::others straggler_score::others_than(std::uint32_t rank, instant now) {
  const bool shared = ranks_.size() >= shares_median_from;
  if (shared && all_at_ && now - *all_at_ < median_again_after)
    return all_;
  std::vector<double> values;
  values.reserve(ranks_.size());
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].busy > 0 && (shared || r != rank))
      values.push_back(ranks_[r].busy);
  others o;
  if (!values.empty()) {
    o.median = middle_of(values);
    for (auto& v : values)
      v = std::abs(v - o.median);
    // Two or three values scatter by chance.
    o.scatter = values.size() < 8 ? 0 : deviations_of_median_distance * middle_of(values);
  }
  if (shared) {
    all_ = o;
    all_at_ = now;
  }
  return o;
}

std::optional<straggler_score::change> straggler_score::add(const diagnosis_policy& policy,
                                                            instant now, const sample& s) {
  if (s.rank >= ranks_.size() || s.steps == 0)
    return std::nullopt;
  auto& r = ranks_[s.rank];
  r.busy = seconds_in(s.busy);
  const auto o = others_than(s.rank, now);
  if (o.median <= 0 || r.busy <= 0)
    return std::nullopt;
  const double score = r.busy / o.median;
  const double usual = seconds_in(s.usual);
  const bool stands_out =
      score >= policy.straggler_score &&
      r.busy - o.median >= std::max(least_difference, scatter_factor * o.scatter);
  const bool worse_than_before =
      r.learnt >= score_learnt_after && usual > 0 &&
      r.busy >= r.mean + std::max(0.25 * r.mean, scatter_factor * std::sqrt(r.square));
  const bool always_slow =
      !s.pipelined && r.learnt < score_learnt_after && score >= policy.straggler_from_start;
  const bool over = stands_out && (worse_than_before || always_slow || r.slow);
  change c;
  c.what = {s.rank, score, usual > 0 && r.mean > 0 ? r.busy / r.mean : 0, s.busy,
            duration_of_seconds(o.median)};
  if (!over) {
    const double mean_over = r.over == 0 ? 0 : r.over_sum / r.over;
    for (; !r.slow && r.over > 0; --r.over)
      learn(r, mean_over);
    learn(r, r.busy);
    r.over = 0;
    r.over_sum = 0;
    r.over_steps = 0;
    r.over_for = {};
    if (!r.slow || ++r.under < over_after)
      return std::nullopt;
    r.slow = false;
    --slow_;
    return c;
  }
  r.under = 0;
  ++r.over;
  r.over_sum += r.busy;
  r.over_steps += s.steps;
  r.over_for += s.within;
  const auto wanted = score >= much_slower ? reports_least : reports_somewhat;
  if (r.slow || r.over < wanted || r.over_steps < policy.straggler_steps ||
      r.over_for < policy.straggler_least || (always_slow && r.over < score_learnt_after))
    return std::nullopt;
  r.slow = true;
  ++slow_;
  if (r.told && now - *r.told < policy.tell_again_after)
    return std::nullopt;
  r.told = now;
  c.begins = true;
  return c;
}

/// What is usual for it, with the distance that a report usually has from that.
void straggler_score::learn(of_rank& r, double busy) {
  ++r.learnt;
  const double off = busy - r.mean;
  if (r.learnt > 1)
    r.square += (off * off - r.square) / std::min(r.learnt, scatter_learnt_within);
  r.mean += off / std::min(r.learnt, learns_within);
}

} // namespace troupe::actors
