#include "actors/master/recovery/run_account.hpp"

#include "actors/words.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::actors {

std::uint32_t run_account::restarts() const {
  std::uint32_t sum = 0;
  for (const auto& [cause, times] : restarts_)
    sum += times;
  return sum;
}

std::string run_account::in_words() const {
  if (restarts_.empty())
    return {};
  std::vector<std::string> causes;
  for (const auto& [cause, times] : restarts_)
    causes.push_back(fmt::format("{}: {}", cause, times));
  return fmt::format("; {} ({})", counted(restarts(), "restart"), fmt::join(causes, ", "));
}

} // namespace troupe::actors
