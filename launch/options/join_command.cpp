#include "launch/options/join_command.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe::launch {

namespace {

/// All of them take a value.
constexpr std::array<std::string_view, 6> of_one_node{
    "--node-rank", "--node-name", "--local-addr", "--journal", "--json-log", "--outcome-file"};
constexpr std::array<std::string_view, 2> endpoints{"--rdzv-endpoint", "--master-addr"};

template<class Names>
bool is_one_of(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "--node_rank=1" is --node-rank.
std::string name_of(const std::string& word) {
  auto name = word.substr(0, word.find('='));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

} // namespace

std::string shell_word(const std::string& word) {
  constexpr auto plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string join_command(const std::vector<std::string>& arguments, const ports::endpoint& master) {
  std::string words;
  bool says_where = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& word = arguments[i];
    const auto name = name_of(word);
    says_where = says_where || is_one_of(endpoints, name);
    if (is_one_of(of_one_node, name))
      i += word.find('=') == std::string::npos ? 1 : 0;
    else
      words += " " + shell_word(word);
  }
  const auto where = says_where ? "" : " --rdzv-endpoint " + shell_word(ports::to_string(master));
  return "actor-launcher" + where + words;
}

} // namespace troupe::launch
