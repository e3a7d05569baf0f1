#include "launch/shell/tree_command.hpp"

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

result<ports::endpoint> find_master(const std::shared_ptr<ports::transport>& transport,
                                    const std::vector<ports::endpoint>& possible) {
  std::vector<std::future<result<void>>> tries;
  for (std::size_t i = 0; i < std::min(possible.size(), tried_max); ++i)
    tries.push_back(std::async(std::launch::async, [&transport, where = possible[i]] {
      return inquiry(transport, where, std::make_shared<wake_up>(), [] { return false; }).link();
    }));
  std::vector<std::string> masters, reasons;
  ports::endpoint found;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    const auto place = ports::to_string(possible[i]);
    const auto linked = tries[i].get();
    if (!linked) {
      reasons.push_back(place + ": " + linked.error().what);
      continue;
    }
    found = possible[i];
    masters.push_back(place);
  }
  if (masters.size() == 1)
    return found;
  if (masters.size() > 1)
    return failure(
        errc::invalid,
        fmt::format("{} jobs of this user run on this machine, their masters are at {}; {}",
                    masters.size(), fmt::join(masters, ", "), what_to_give));
  if (reasons.size() > reasons_shown)
    reasons.resize(reasons_shown);
  return failure(
      errc::unavailable,
      fmt::format("no master of this user's jobs was found on this machine; {}{}", what_to_give,
                  reasons.empty() ? std::string()
                                  : fmt::format(" (tried {})", fmt::join(reasons, "; "))));
}

} // namespace troupe::launch
