#include "launch/options/job_words.hpp"

#include "launch/options/planned_end.hpp"
#include "launch/options/values.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace troupe::launch {

namespace {

constexpr auto id_option = "--rdzv-id";
constexpr auto conf_option = "--rdzv-conf";

/// The others tell how this node finds the master.
constexpr std::array<std::string_view, 4> masters_keys{
    "join_timeout", "keep_alive_interval", "keep_alive_max_attempt", "last_call_timeout"};

/// In one order, so that the same settings are the same text.
std::string masters_settings(const std::string& conf) {
  std::vector<std::string> kept;
  for (const auto& setting : split(conf, ',')) {
    const auto key = stripped(setting.substr(0, setting.find('=')));
    if (std::find(masters_keys.begin(), masters_keys.end(), key) != masters_keys.end())
      kept.push_back(stripped(setting));
  }
  std::sort(kept.begin(), kept.end());
  std::string text;
  for (const auto& setting : kept)
    text += (text.empty() ? "" : ",") + setting;
  return text;
}

} // namespace

messages::job_words job_words_of(const argument_grammar::positional& found,
                                 const std::map<std::string, std::string>& environment) {
  messages::job_words words;
  for (const auto& [name, given] : found.said) {
    if (given.whose != scope::job || name == id_option || name == nodes_option)
      continue;
    auto value = given.flag ? std::string() : given.value;
    if (name == conf_option) {
      value = masters_settings(value);
      if (value.empty())
        continue;
    }
    words.push_back({name, std::move(value), given.flag, {}});
  }
  for (const auto& [name, variable] : planned_end_variables())
    if (const auto said = environment.find(variable);
        said != environment.end() && !said->second.empty() && !find(words, name))
      words.push_back({name, said->second, false, {}});
  return words;
}

} // namespace troupe::launch
