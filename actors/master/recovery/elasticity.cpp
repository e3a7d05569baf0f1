#include "actors/master/recovery/elasticity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace troupe::actors {

namespace {

/// Numbers with more divisors than any smaller one, as far as DeepSpeed's list goes.
constexpr std::int64_t highly_composite[] = {
    1,       2,       4,       6,       12,      24,      36,      48,     60,     120,
    180,     240,     360,     720,     840,     1'260,   1'680,   2'520,  5'040,  7'560,
    10'080,  15'120,  20'160,  25'200,  27'720,  45'360,  50'400,  55'440, 83'160, 110'880,
    166'320, 221'760, 277'200, 332'640, 498'960, 554'400, 665'280, 720'720};

/// A sane bound: no job trains with more, and all that follows stays within 64 bits.
constexpr std::int64_t number_max = 1'000'000'000;

/// Sums of a few micro batches may have a multiple beyond all bounds; nothing above the largest
/// batch matters then.
std::optional<std::int64_t> common_multiple(const std::vector<std::int64_t>& numbers) {
  std::int64_t all = 1;
  for (const auto n : numbers) {
    all = all / std::gcd(all, n) * n;
    if (all > number_max)
      return std::nullopt;
  }
  return all;
}

std::int64_t scaled(std::int64_t base, std::int64_t cap) {
  const auto* above =
      std::upper_bound(std::begin(highly_composite), std::end(highly_composite), cap / base);
  return base * *(above - 1);
}

std::set<std::int64_t> candidates(const std::vector<std::int64_t>& micros, std::int64_t cap,
                                  elasticity_config::variant which) {
  std::set<std::int64_t> all;
  const auto consider = [&](std::int64_t base) {
    if (base > cap && which == elasticity_config::variant::capped)
      return;
    all.insert(base >= cap ? base : scaled(base, cap));
  };
  for (const auto m : micros)
    consider(m);
  if (const auto multiple = common_multiple(micros))
    consider(*multiple);
  return all;
}

std::vector<std::int64_t> counts_for(std::int64_t batch, const std::vector<std::int64_t>& micros,
                                     std::int64_t min, std::int64_t max) {
  std::set<std::int64_t> counts;
  const auto consider = [&](std::int64_t n) {
    if (n >= min && n <= max)
      counts.insert(n);
  };
  for (const auto m : micros) {
    if (batch % m != 0)
      continue;
    const auto most = batch / m;
    for (std::int64_t i = 1; i * i <= most; ++i)
      if (most % i == 0) {
        consider(i);
        consider(most / i);
      }
  }
  return {counts.begin(), counts.end()};
}

/// The 0.1 rule. A bound of 0 means "not given", as in the original.
elastic_batch best_batch(const elasticity_config& c, std::int64_t cap, std::int64_t min,
                         std::int64_t max) {
  const auto& micros = c.micro_batch_sizes;
  const auto smallest = *std::min_element(micros.begin(), micros.end());
  min = min ? min : 1;
  max = max ? max : cap / smallest;
  elastic_batch best;
  best.batch = smallest;
  for (const auto batch : candidates(micros, cap, c.which)) {
    auto counts = counts_for(batch, micros, min, max);
    const bool better_size = c.prefer_larger_batch ? batch > best.batch : batch < best.batch;
    if (counts.size() > best.counts.size() || (counts.size() == best.counts.size() && better_size))
      best = {batch, std::move(counts), {}};
  }
  return best;
}

std::optional<error> contradiction(const elasticity_config& c) {
  const auto wrong = [](std::string what) {
    return error{errc::invalid, "elasticity: " + std::move(what)};
  };
  for (const auto& [name, value] :
       {std::pair{"max_train_batch_size", c.max_train_batch_size},
        std::pair{"min_gpus", c.min_gpus}, std::pair{"max_gpus", c.max_gpus},
        std::pair{"num_gpus_per_node", c.num_gpus_per_node},
        std::pair{"model_parallel_size", c.model_parallel_size}})
    if (value < 1 || value > number_max)
      return wrong(fmt::format("{} is {}; 1 to {} are possible", name, value, number_max));
  if (c.micro_batch_sizes.empty())
    return wrong("micro_batch_sizes is empty");
  for (const auto m : c.micro_batch_sizes)
    if (m < 1 || m > number_max)
      return wrong(fmt::format("{} among micro_batch_sizes is no size of a batch", m));
  if (c.max_gpus < c.min_gpus)
    return wrong(fmt::format("max_gpus is {}, less than min_gpus, {}", c.max_gpus, c.min_gpus));
  const bool by_node = c.version == elasticity_config::rules::v0_2;
  if (!by_node && c.model_parallel_size > 1)
    return wrong("version 0.1 knows no model_parallel_size");
  if (by_node && c.num_gpus_per_node % c.model_parallel_size != 0)
    return wrong(fmt::format("num_gpus_per_node, {}, is no multiple of model_parallel_size, {}",
                             c.num_gpus_per_node, c.model_parallel_size));
  const auto cap = by_node ? c.max_train_batch_size / (c.num_gpus_per_node / c.model_parallel_size)
                           : c.max_train_batch_size;
  const auto largest = *std::max_element(c.micro_batch_sizes.begin(), c.micro_batch_sizes.end());
  if (largest > cap)
    return wrong(fmt::format("{} among micro_batch_sizes is more than max_train_batch_size{}, {}",
                             largest, by_node ? " for one node's share" : "", cap));
  return std::nullopt;
}

} // namespace

result<elasticity> elasticity::make(elasticity_config config) {
  if (auto wrong = contradiction(config))
    return tl::make_unexpected(*wrong);
  return elasticity(std::move(config));
}

elasticity::elasticity(elasticity_config config) : config_(std::move(config)) {
  const auto& c = config_;
  if (c.version == elasticity_config::rules::v0_1) {
    regular_ = best_batch(c, c.max_train_batch_size, c.min_gpus, c.max_gpus);
    return;
  }
  const auto share = c.num_gpus_per_node / c.model_parallel_size;
  regular_ = best_batch(c, c.max_train_batch_size / share, c.min_gpus / c.num_gpus_per_node,
                        c.max_gpus / c.num_gpus_per_node);
  regular_.batch *= share;
  for (auto& n : regular_.counts)
    n *= share;
}

namespace {

std::optional<std::int64_t> micro_for(const elasticity_config& c, std::int64_t share) {
  std::optional<std::int64_t> found;
  for (const auto m : c.micro_batch_sizes)
    if (share % m == 0 && (!found || (c.prefer_larger_batch && m > *found)))
      found = m;
  return found;
}

/// Among how many the batch is shared when the micro batch is chosen.
std::int64_t divisor(const elasticity_config& c, std::int64_t world, std::int64_t parallel) {
  return c.which == elasticity_config::variant::capped ? parallel : world;
}

} // namespace

elastic_batch elasticity::batch_for(std::uint64_t workers) const {
  if (config_.version == elasticity_config::rules::v0_1)
    return regular_;
  const auto world = static_cast<std::int64_t>(workers);
  const auto parallel = world / config_.model_parallel_size;
  if (!std::binary_search(regular_.counts.begin(), regular_.counts.end(), parallel))
    return fallback_for(workers);
  auto answer = regular_;
  answer.micro = micro_for(config_, answer.batch / divisor(config_, world, parallel));
  return answer;
}

/// In floating point, like the original: what it rounds away is lost for us too.
elastic_batch elasticity::fallback_for(std::uint64_t workers) const {
  const auto& c = config_;
  const auto share = static_cast<double>(c.num_gpus_per_node / c.model_parallel_size);
  const double parallel =
      static_cast<double>(workers) / static_cast<double>(c.num_gpus_per_node) * share;
  std::optional<double> best;
  for (const auto m : c.micro_batch_sizes) {
    const double step = static_cast<double>(m) * parallel;
    const double batch = std::floor(static_cast<double>(c.max_train_batch_size) / step) * step;
    if (!best || (c.prefer_larger_batch ? batch > *best : batch < *best))
      best = batch;
  }
  elastic_batch answer;
  answer.batch = static_cast<std::int64_t>(*best);
  const auto whole = static_cast<std::int64_t>(parallel);
  answer.counts = {whole};
  if (const auto by = divisor(c, static_cast<std::int64_t>(workers), whole); by > 0)
    answer.micro =
        micro_for(c, static_cast<std::int64_t>(std::floor(*best / static_cast<double>(by))));
  return answer;
}

bool elasticity::allows(std::uint64_t workers) const {
  const auto& c = config_;
  if (workers == 0 || workers > static_cast<std::uint64_t>(number_max))
    return false;
  const auto world = static_cast<std::int64_t>(workers);
  if (c.version == elasticity_config::rules::v0_1)
    return std::binary_search(regular_.counts.begin(), regular_.counts.end(), world);
  if (world % c.model_parallel_size != 0)
    return false;
  const auto parallel = world / c.model_parallel_size;
  if (std::binary_search(regular_.counts.begin(), regular_.counts.end(), parallel))
    return micro_for(c, regular_.batch / parallel).has_value();
  // The original's own fallback does not look at its bounds. Here they count: they were set on
  // purpose.
  if (world < c.min_gpus || world > c.max_gpus)
    return false;
  const auto own = fallback_for(workers);
  return own.batch > 0 && own.counts.front() == parallel &&
         micro_for(c, own.batch / parallel).has_value();
}

} // namespace troupe::actors
