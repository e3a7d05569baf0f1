#include "actors/node_supervisor/hang_watchdog/standing_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace troupe::actors {

namespace {

/// "data loader's worker 7", where that is its role.
std::string part_named(const std::string& role) {
  const std::string loader = "data loader worker";
  return role.rfind(loader, 0) == 0 ? "data loader's worker" + role.substr(loader.size()) : role;
}

/// The child for which it waits: one that is stopped, or that the kernel holds, or that is where
/// the others are not. Loaders that have nothing to do all wait in the same place.
const diag::child_look* keeper_of(const diag::process_look& look) {
  std::map<std::string, std::size_t> places;
  for (const auto& c : look.children)
    if (!c.role.empty())
      ++places[c.place];
  const diag::child_look* found = nullptr;
  const auto weight = [&places](const diag::child_look& c) {
    if (c.state == 'T' || c.state == 't')
      return 4;
    if (c.state == 'D')
      return 3;
    if (c.state == 'Z')
      return 2;
    return !c.place.empty() && places[c.place] == 1 && (places.size() > 1) ? 1 : 0;
  };
  for (const auto& c : look.children)
    if (!c.role.empty() && weight(c) > (found ? weight(*found) : 0))
      found = &c;
  if (found)
    return found;
  const auto has_role = [](const diag::child_look& c) { return !c.role.empty(); };
  const auto only = std::find_if(look.children.begin(), look.children.end(), has_role);
  return std::count_if(look.children.begin(), look.children.end(), has_role) == 1 ? &*only
                                                                                  : nullptr;
}

} // namespace

std::string standing_place(const diag::process_look& look, bool waits_for_input) {
  const auto* child = waits_for_input ? keeper_of(look) : nullptr;
  if (!child)
    return look.place;
  if (child->state == 'T' || child->state == 't')
    return fmt::format("a wait for its {}, which is stopped (kill -CONT {} lets it go on)",
                       part_named(child->role), child->pid);
  if (child->state == 'Z')
    return fmt::format("a wait for its {}, which has ended", part_named(child->role));
  return child->place.empty() ? fmt::format("a wait for its {}", part_named(child->role))
                              : fmt::format("{} of its {}", child->place, part_named(child->role));
}

bool is_in_debugger(const diag::process_look& look) {
  if (look.traced)
    return true;
  for (const auto* name : {"pdb.py", "bdb.py", "debugpy", "pydevd", "ipdb"})
    if (look.place.find(name) != std::string::npos)
      return true;
  return false;
}

} // namespace troupe::actors
