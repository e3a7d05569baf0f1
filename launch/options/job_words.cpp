#include "launch/options/job_words.hpp"

#include "launch/options/planned_end.hpp"
#include "launch/options/values.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace troupe::launch {

namespace {

/// The others tell how this node finds the master.
constexpr std::array<std::string_view, 4> masters_keys{
    "join_timeout", "keep_alive_interval", "keep_alive_max_attempt", "last_call_timeout"};

/// Each is a word of its own, so that one setting of the master's leaves the others to the nodes.
void add_settings(messages::job_words& words, const std::string& conf) {
  for (const auto& setting : split(conf, ',')) {
    const auto equals = setting.find('=');
    const auto key = stripped(setting.substr(0, equals));
    if (equals != std::string::npos &&
        std::find(masters_keys.begin(), masters_keys.end(), key) != masters_keys.end())
      words.push_back({std::string(conf_option) + " " + key,
                       stripped(setting.substr(equals + 1)),
                       false,
                       false,
                       {}});
  }
}

} // namespace

messages::job_words job_words_of(const argument_grammar::positional& found,
                                 const std::map<std::string, std::string>& environment) {
  messages::job_words words;
  for (const auto& [name, given] : found.said) {
    const bool of_job = given.whose == scope::job || given.whose == scope::both;
    if (!of_job || name == id_option || name == nodes_option)
      continue;
    if (name == conf_option)
      add_settings(words, given.value);
    else
      words.push_back({name,
                       given.flag ? std::string() : given.value,
                       given.flag,
                       given.whose == scope::both,
                       {}});
  }
  for (const auto& [name, variable] : planned_end_variables())
    if (const auto said = environment.find(variable);
        said != environment.end() && !said->second.empty() && !find(words, name))
      words.push_back({name, said->second, false, name != "--graceful-save-within", {}});
  return words;
}

} // namespace troupe::launch
