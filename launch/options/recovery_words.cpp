#include "launch/options/recovery_words.hpp"

#include "launch/options/values.hpp"
#include "runtime/base/recover_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace troupe::launch {

namespace {

/// A variable that MindCluster's guide sets: how its values look, and what follows from one.
struct recovery_variable {
  const char* name;
  const char* values;
  bool (*is_value)(const std::string&);
  std::string (*effect)(const std::string&);
};

bool is_on_or_off(const std::string& value) {
  return value == "on" || value == "off";
}

bool is_one_or_zero(const std::string& value) {
  return value == "1" || value == "0";
}

/// "L0:0, L1:1, L2:1"
bool is_retry_by_level(const std::string& value) {
  const auto levels = split(value, ',');
  return std::all_of(levels.begin(), levels.end(), [](const std::string& part) {
    const auto level = stripped(part);
    return level.size() == 4 && level[0] == 'L' && level[1] >= '0' && level[1] <= '9' &&
           level[2] == ':' && (level[3] == '0' || level[3] == '1');
  });
}

bool is_whole(const std::string& value) {
  return digits(value).has_value();
}

bool is_anything(const std::string&) {
  return true;
}

std::string effect_of_switch(const std::string& value) {
  return value == "off" || value == "0"
             ? fmt::format("there is no recovery inside of a running process yet that it would "
                           "switch off; {}",
                           recovery_today)
             : fmt::format("there is no recovery inside of a running process yet; {}",
                           recovery_today);
}

std::string effect_of_retry(const std::string&) {
  return "HCCL reads it in the workers, and repeats an operation there that has failed; if that "
         "fails as well, the worker fails as without it";
}

std::string effect_of_error_handling(const std::string& value) {
  return value == "0"
             ? "torch_npu reads it in the workers: a collective that fails ends none of "
               "them then, and the job stands still until that is found (--hang-action)"
             : "torch_npu reads it in the workers: a collective that fails ends its worker";
}

std::string effect_on_mindspore(const std::string&) {
  return "MindSpore reads it in the workers; Troupe does not";
}

constexpr recovery_variable recovery_variables[] = {
    {"PROCESS_RECOVER", "on or off", is_on_or_off, effect_of_switch},
    {"ELASTIC_PROCESS_RECOVER_ENABLE", "1 or 0", is_one_or_zero, effect_of_switch},
    {"HCCL_OP_RETRY_ENABLE", "a list as L0:0,L1:1,L2:1", is_retry_by_level, effect_of_retry},
    {"HCCL_ASYNC_ERROR_HANDLING", "a whole number", is_whole, effect_of_error_handling},
    {"MS_ENABLE_TFT", "anything", is_anything, effect_on_mindspore},
};

} // namespace

result<void> check_recover_strategy(const std::string& strategy) {
  if (strategy.empty())
    return {};
  if (const auto unknown = unknown_recover_strategy(strategy))
    return failure(
        errc::invalid,
        fmt::format("--recover-strategy {}: '{}' is none of {}; any of them are possible, "
                    "separated by commas",
                    strategy, *unknown, recover_strategies()));
  return {};
}

result<std::vector<std::string>>
recovery_remarks(const std::string& strategy,
                 const std::map<std::string, std::string>& environment) {
  if (const auto good = check_recover_strategy(strategy); !good)
    return tl::make_unexpected(good.error());
  std::vector<std::string> remarks;
  if (!strategy.empty())
    remarks.push_back(
        fmt::format("--recover-strategy {}: {}", strategy, effect_of_recover_strategy(strategy)));
  for (const auto& variable : recovery_variables) {
    const auto set = environment.find(variable.name);
    if (set == environment.end() || set->second.empty())
      continue;
    const auto& value = set->second;
    remarks.push_back(variable.is_value(value)
                          ? fmt::format("{}={}: {}", variable.name, value, variable.effect(value))
                          : fmt::format("{}: '{}' is not {}; Troupe takes nothing from it",
                                        variable.name, value, variable.values));
  }
  return remarks;
}

} // namespace troupe::launch
