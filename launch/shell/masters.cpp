#include "launch/shell/masters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>

namespace troupe::launch {

namespace {

/// More listening places than this are not tried: the person has to say which.
constexpr std::size_t tried_max = 32;
constexpr std::size_t reasons_shown = 2;
constexpr auto what_to_give = "--master HOST:PORT (or TROUPE_MASTER_ADDR) says which one is meant";

} // namespace

masters masters_among(const std::vector<std::shared_ptr<ports::transport>>& transports,
                      const std::vector<ports::endpoint>& possible) {
  std::vector<std::unique_ptr<inquiry>> asked;
  std::vector<std::future<result<void>>> tries;
  for (std::size_t i = 0; i < std::min(possible.size(), tried_max); ++i)
    for (const auto& by : transports) {
      asked.push_back(std::make_unique<inquiry>(by, possible[i], std::make_shared<wake_up>(),
                                                [] { return false; }));
      tries.push_back(
          std::async(std::launch::async, [one = asked.back().get()] { return one->link(); }));
    }
  masters all;
  for (std::size_t i = 0; i < tries.size(); ++i)
    if (const auto linked = tries[i].get())
      all.found.push_back(std::move(asked[i]));
    else
      all.reasons.push_back(ports::to_string(asked[i]->master()) + ": " + linked.error().what);
  return all;
}

result<master_place> find_master(const std::vector<std::shared_ptr<ports::transport>>& transports,
                                 const std::vector<ports::endpoint>& possible) {
  auto [found, reasons] = masters_among(transports, possible);
  if (found.size() == 1)
    return master_place{found.front()->transport(), found.front()->master()};
  if (found.size() > 1) {
    std::vector<std::string> jobs;
    for (const auto& one : found)
      jobs.push_back(fmt::format("{} at {}", one->job(), ports::to_string(one->master())));
    return failure(errc::invalid, fmt::format("{} jobs of this user run on this machine: {}; {}",
                                              found.size(), fmt::join(jobs, ", "), what_to_give));
  }
  if (reasons.size() > reasons_shown)
    reasons.resize(reasons_shown);
  return failure(
      errc::unavailable,
      fmt::format("no master of this user's jobs was found on this machine; {}{}", what_to_give,
                  reasons.empty() ? std::string()
                                  : fmt::format(" (tried {})", fmt::join(reasons, "; "))));
}

} // namespace troupe::launch
