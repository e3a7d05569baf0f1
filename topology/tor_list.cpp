#include "topology/tor_list.hpp"

#include "topology/compressed_text.hpp"
#include "topology/limits.hpp"
#include "topology/place_list.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace troupe::topology {

namespace {

class tor_list_reader {
 public:
  explicit tor_list_reader(json_problem& problem) : problem_(problem), places_(problem) {}

  void read(const json_value& document) {
    json_members members(document, "a list of switches", problem_);
    for (const auto& one : members.list("server_list")) {
      if (problem_.first())
        return;
      json_members server(one, "a server", problem_);
      const auto id = server.text("server_id");
      const auto switches = switches_of(server, id);
      if (!problem_.first())
        places_.add({id, {fmt::format("{}", fmt::join(switches, "+"))}}, one.line);
    }
  }

  result<network_tree> tree() && { return std::move(places_).tree(); }

 private:
  std::set<std::string> switches_of(json_members& server, const std::string& id) {
    std::set<std::string> switches;
    const auto& list = server.list("device");
    if (list.empty())
      problem_.found(server.line(), fmt::format("server {} has no devices", id));
    for (const auto& one : list) {
      json_members device(one, "a device", problem_);
      check_address(device, device.text("device_ip"));
      auto name = device.text("tor_ip");
      if (name.empty())
        problem_.found(device.line_of("tor_ip"),
                       fmt::format("a device of server {} has no switch; is the annotation "
                                   "cce.kubectl.kubernetes.io/ascend-rank-table of its node empty?",
                                   id));
      switches.insert(std::move(name));
    }
    return switches;
  }

  void check_address(json_members& device, const std::string& address) {
    if (address.empty())
      return;
    const auto line = device.line_of("device_ip");
    const auto [earlier, fresh] = addresses_.emplace(address, line);
    if (!fresh)
      problem_.found(line,
                     fmt::format("address {} is on line {} already", address, earlier->second));
  }

  json_problem& problem_;
  place_list places_;
  std::map<std::string, std::uint32_t> addresses_;
};

} // namespace

result<network_tree> tree_of_tor_list(const json_value& document) {
  json_problem problem;
  tor_list_reader reader(problem);
  reader.read(document);
  return std::move(reader).tree();
}

result<network_tree> tree_of_tor_list(std::string_view text) {
  const auto document = plain_json(text);
  if (!document)
    return tl::make_unexpected(document.error());
  return tree_of_tor_list(*document);
}

} // namespace troupe::topology
