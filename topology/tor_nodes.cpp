#include "topology/tor_nodes.hpp"

#include "topology/place_list.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace troupe::topology {

result<network_tree> tree_of_tor_nodes(const json_value& document) {
  json_problem problem;
  place_list places(problem);
  json_members members(document, "a list of switches", problem);
  const auto& switches = members.list("server_list");
  if (const auto says = members.number("tor_count"); says != switches.size())
    problem.found(members.line_of("tor_count"),
                  fmt::format("'tor_count' is {}, and {} are there", says, switches.size()));
  std::map<std::string, std::uint32_t> seen;
  for (const auto& one : switches) {
    if (problem.first())
      break;
    json_members listed(one, "a switch", problem);
    const auto name = listed.text("tor_ip");
    const auto line = listed.line_of("tor_ip");
    if (const auto [earlier, fresh] = seen.emplace(name, line); !fresh)
      problem.found(line, fmt::format("switch {} is on line {} already", name, earlier->second));
    for (const auto& server : listed.list("server"))
      places.add({json_members(server, "a server", problem).text("server_ip"), {name}},
                 server.line);
  }
  return std::move(places).tree();
}

} // namespace troupe::topology
