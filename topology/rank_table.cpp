#include "topology/rank_table.hpp"

#include "topology/compressed_text.hpp"
#include "topology/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::topology {

namespace {

constexpr const char* clos = "CLOS";
constexpr const char* in_topology_file = "TOPO_FILE_DESC";

/// Reads one table; `problem` has what was wrong first.
class table_reader {
 public:
  explicit table_reader(json_problem& problem) : problem_(problem) {}

  rank_table read(const json_value& document) {
    rank_table table;
    json_members members(document, "a rank table", problem_);
    // First: some writers begin with a table that says nothing but that.
    table.completed = completed(members);
    if (!table.completed || problem_.first())
      return table;
    table.version = version_of(members);
    if (problem_.first())
      return table;
    if (table.version == rank_table_version::v2_0)
      read_devices(members, table);
    else
      read_servers(members, table);
    if (table.version == rank_table_version::v1_2)
      read_super_pods(members, table);
    return table;
  }

 private:
  rank_table_version version_of(json_members& members) {
    const auto version = members.text("version");
    if (version == "1.2")
      return rank_table_version::v1_2;
    if (version == "2.0")
      return rank_table_version::v2_0;
    if (version != "1.0")
      problem_.found(members.line_of("version"),
                     fmt::format("version '{}' is not known; 1.0, 1.2 and 2.0 are", version));
    return rank_table_version::v1_0;
  }

  bool completed(json_members& members) {
    const auto status = members.text("status");
    if (status != "completed" && status != "initializing")
      problem_.found(members.line_of("status"),
                     fmt::format("status is '{}'; expected initializing or completed", status));
    return status == "completed";
  }

  void read_servers(json_members& members, rank_table& table) {
    const auto& list = members.list("server_list");
    check_count(members, "server_count", members.number_in_text("server_count"), list.size());
    if (list.size() > limits::nodes_max)
      return problem_.found(
          members.line_of("server_list"),
          fmt::format("{} servers; {} are allowed", list.size(), limits::nodes_max));
    for (const auto& one : list) {
      if (problem_.first())
        return;
      json_members server(one, "a server", problem_);
      ranked_server read;
      read.server_id = server.text("server_id");
      read.host_ip = server.optional_text("host_ip");
      read.container_ip = server.optional_text("container_ip");
      read.hardware_type = server.optional_text("hardware_type");
      once(servers_, read.server_id, one.line, "server");
      read_devices_of(server, table.version, read);
      table.servers.push_back(std::move(read));
    }
    check_ranks(members.line_of("server_list"));
  }

  void read_devices_of(json_members& server, rank_table_version version, ranked_server& into) {
    const auto& list = server.list("device");
    if (list.size() > limits::local_world_max)
      return problem_.found(
          server.line_of("device"),
          fmt::format("{} devices; {} are allowed", list.size(), limits::local_world_max));
    std::map<std::string, std::uint32_t> ids;
    for (const auto& one : list) {
      json_members device(one, "a device", problem_);
      ranked_device read;
      read.device_id = device.number_in_text("device_id");
      read.device_ip = device.text("device_ip");
      read.rank = device.number_in_text("rank_id");
      if (version == rank_table_version::v1_2)
        read.super_device_id = device.text("super_device_id");
      read.device_port = device.optional_text("device_port");
      read.backup_device_ip = device.optional_text("backup_device_ip");
      read.backup_device_port = device.optional_text("backup_device_port");
      once(ids, std::to_string(read.device_id), one.line, "device");
      if (!read.device_ip.empty())
        once(addresses_, read.device_ip, device.line_of("device_ip"), "address");
      ranks_.emplace_back(read.rank, device.line_of("rank_id"));
      into.devices.push_back(std::move(read));
    }
  }

  void read_super_pods(json_members& members, rank_table& table) {
    std::map<std::string, std::uint32_t> pods, placed;
    for (const auto& one : members.list("super_pod_list")) {
      json_members pod(one, "a super pod", problem_);
      super_pod read;
      read.super_pod_id = pod.text("super_pod_id");
      once(pods, read.super_pod_id, one.line, "super pod");
      for (const auto& server : pod.list("server_list")) {
        json_members named(server, "a server of a super pod", problem_);
        auto id = named.text("server_id");
        if (servers_.count(id) == 0)
          problem_.found(server.line, fmt::format("server {} is not in 'server_list'", id));
        once(placed, id, server.line, "server");
        read.servers.push_back(std::move(id));
      }
      table.super_pods.push_back(std::move(read));
    }
    for (const auto& [id, line] : servers_)
      if (placed.count(id) == 0)
        problem_.found(line, fmt::format("server {} is in no super pod", id));
  }

  void read_devices(json_members& members, rank_table& table) {
    const auto& list = members.list("rank_list");
    check_count(members, "rank_count", members.number("rank_count"), list.size());
    for (const auto& one : list) {
      if (problem_.first())
        return;
      json_members device(one, "a rank", problem_);
      ranked_device_2 read;
      read.rank = device.number("rank_id");
      read.local_id = device.number("local_id");
      read.device_id = device.number("device_id");
      ranks_.emplace_back(read.rank, device.line_of("rank_id"));
      std::map<std::string, std::uint32_t> layers;
      for (const auto& network : device.list("level_list")) {
        read.networks.push_back(network_of(network));
        once(layers, std::to_string(read.networks.back().net_layer), network.line, "layer");
      }
      table.devices.push_back(std::move(read));
    }
    check_ranks(members.line_of("rank_list"));
  }

  device_network network_of(const json_value& from) {
    json_members network(from, "a level", problem_);
    device_network read;
    read.net_layer = network.number("net_layer");
    read.net_instance_id = network.text("net_instance_id");
    const auto type = network.text("net_type");
    read.clos = type == clos;
    if (type != clos && type != in_topology_file)
      problem_.found(network.line_of("net_type"), fmt::format("net_type is '{}'; expected {} or {}",
                                                              type, in_topology_file, clos));
    read.net_attr = network.text("net_attr");
    for (const auto& one : network.list("rank_addr_list"))
      read.addresses.push_back(address_of(one));
    return read;
  }

  device_address address_of(const json_value& from) {
    json_members address(from, "an address", problem_);
    device_address read;
    read.addr_type = address.text("addr_type");
    read.addr = address.text("addr");
    for (const auto& port : address.list("ports")) {
      if (port.is != json_value::kind::text)
        problem_.found(port.line, "a port of an address is no text");
      read.ports.push_back(port.text);
    }
    read.plane_id = address.text("plane_id");
    return read;
  }

  void check_count(json_members& members, std::string_view name, std::size_t says,
                   std::size_t has) {
    if (says != has)
      problem_.found(members.line_of(name),
                     fmt::format("'{}' is {}, and {} are there", name, says, has));
  }

  void once(std::map<std::string, std::uint32_t>& seen, const std::string& name, std::uint32_t line,
            std::string_view what) {
    const auto [earlier, fresh] = seen.emplace(name, line);
    if (!fresh)
      problem_.found(line, fmt::format("{} {} is on line {} already", what, name, earlier->second));
  }

  /// From 0 on, each once.
  void check_ranks(std::uint32_t line_of_list) {
    std::stable_sort(ranks_.begin(), ranks_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t n = 0; n < ranks_.size(); ++n) {
      const auto [rank, line] = ranks_[n];
      if (n > 0 && ranks_[n - 1].first == rank)
        return problem_.found(
            line, fmt::format("rank {} is on line {} already", rank, ranks_[n - 1].second));
      if (rank != n)
        return problem_.found(line_of_list,
                              fmt::format("of {} ranks, rank {} is missing", ranks_.size(), n));
    }
  }

  json_problem& problem_;
  std::map<std::string, std::uint32_t> servers_, addresses_;   ///< on which lines
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranks_; ///< and their lines
};

} // namespace

result<rank_table> rank_table_of(const json_value& document) {
  json_problem problem;
  auto table = table_reader(problem).read(document);
  if (problem.first())
    return tl::make_unexpected(*problem.first());
  return table;
}

result<rank_table> rank_table_of(std::string_view text) {
  const auto document = plain_json(text);
  if (!document)
    return tl::make_unexpected(document.error());
  return rank_table_of(*document);
}

result<network_tree> tree_of(const rank_table& table) {
  if (!table.completed)
    return failure(errc::unavailable, "the rank table is not completed");
  if (table.version == rank_table_version::v2_0)
    return failure(errc::absent, "a rank table of version 2.0 names no servers");
  std::map<std::string_view, std::string_view> pods;
  for (const auto& pod : table.super_pods)
    for (const auto& server : pod.servers)
      pods.emplace(server, pod.super_pod_id);
  std::vector<place> places;
  for (const auto& server : table.servers) {
    place one{server.server_id, {}};
    if (const auto pod = pods.find(server.server_id); pod != pods.end())
      one.switches.emplace_back(pod->second);
    for (const auto& address : {server.host_ip, server.container_ip})
      if (!address.empty())
        one.also.push_back(address);
    places.push_back(std::move(one));
  }
  return network_tree::of(std::move(places));
}

} // namespace troupe::topology
