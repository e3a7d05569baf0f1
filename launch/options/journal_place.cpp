#include "launch/options/journal_place.hpp"

#include <fmt/format.h>

#include <string_view>

namespace troupe::launch {

namespace {

constexpr std::string_view prefix = "configmap:";
/// RFC 1123's names of hosts, as Kubernetes has them for objects.
constexpr std::size_t name_max = 253;
constexpr std::string_view inside = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view between = "-.";

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > name_max)
    return false;
  auto before = '.';
  for (const auto c : text) {
    const bool is_inside = inside.find(c) != std::string_view::npos;
    if (!is_inside && between.find(c) == std::string_view::npos)
      return false;
    if ((c == '.' && inside.find(before) == std::string_view::npos) || (c == '-' && before == '.'))
      return false;
    before = c;
  }
  return inside.find(before) != std::string_view::npos;
}

} // namespace

std::optional<std::string> config_map_of(const std::string& journal) {
  if (journal.rfind(prefix, 0) != 0)
    return std::nullopt;
  return journal.substr(prefix.size());
}

std::optional<error> wrong_journal(const std::string& journal) {
  const auto name = config_map_of(journal);
  if (!name || is_name(*name))
    return std::nullopt;
  return error{errc::invalid,
               fmt::format("--journal={}: '{}' is no name of a ConfigMap (small letters, digits, "
                           "'-' and '.', such as configmap:words); a file of that name is ./{}",
                           journal, *name, journal)};
}

} // namespace troupe::launch
