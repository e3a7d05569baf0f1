#include "topology/rank_table.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <fmt/format.h>

namespace troupe::topology {

namespace {

std::string quoted(const std::string& text) {
  return boost::json::serialize(boost::json::string(text));
}

const char* name_of(rank_table_version version) {
  switch (version) {
  case rank_table_version::v1_0:
    return "1.0";
  case rank_table_version::v1_2:
    return "1.2";
  case rank_table_version::v2_0:
    return "2.0";
  }
  return "";
}

/// A member that is left out when there is nothing in it.
std::string optional(std::string_view name, const std::string& text) {
  return text.empty() ? std::string() : fmt::format(",\"{}\":{}", name, quoted(text));
}

/// The texts of a list, a line for each.
template<class List, class Text>
std::string lines_of(const List& list, Text&& text_of_one) {
  std::string all;
  for (const auto& one : list)
    all += (all.empty() ? "\n" : ",\n") + text_of_one(one);
  return "[" + all + "]";
}

std::string of_device(const ranked_device& one, bool in_super_pod) {
  const auto super_device =
      in_super_pod ? fmt::format(",\"super_device_id\":{}", quoted(one.super_device_id)) : "";
  return fmt::format("{{\"device_id\":\"{}\",\"device_ip\":{},\"rank_id\":\"{}\"{}{}{}{}}}",
                     one.device_id, quoted(one.device_ip), one.rank, super_device,
                     optional("device_port", one.device_port),
                     optional("backup_device_ip", one.backup_device_ip),
                     optional("backup_device_port", one.backup_device_port));
}

std::string of_server(const ranked_server& one, bool in_super_pod) {
  const auto devices = lines_of(one.devices, [in_super_pod](const ranked_device& device) {
    return of_device(device, in_super_pod);
  });
  return fmt::format("{{\"server_id\":{}{}{}{},\"device\":{}}}", quoted(one.server_id),
                     optional("host_ip", one.host_ip), optional("container_ip", one.container_ip),
                     optional("hardware_type", one.hardware_type), devices);
}

std::string of_super_pod(const super_pod& one) {
  return fmt::format("{{\"super_pod_id\":{},\"server_list\":{}}}", quoted(one.super_pod_id),
                     lines_of(one.servers, [](const std::string& id) {
                       return fmt::format("{{\"server_id\":{}}}", quoted(id));
                     }));
}

std::string of_address(const device_address& one) {
  std::string ports;
  for (const auto& port : one.ports)
    ports += (ports.empty() ? "" : ",") + quoted(port);
  return fmt::format("{{\"addr_type\":{},\"addr\":{},\"ports\":[{}],\"plane_id\":{}}}",
                     quoted(one.addr_type), quoted(one.addr), ports, quoted(one.plane_id));
}

std::string of_network(const device_network& one) {
  return fmt::format("{{\"net_layer\":{},\"net_instance_id\":{},\"net_type\":\"{}\","
                     "\"net_attr\":{},\"rank_addr_list\":{}}}",
                     one.net_layer, quoted(one.net_instance_id),
                     one.clos ? "CLOS" : "TOPO_FILE_DESC", quoted(one.net_attr),
                     lines_of(one.addresses, of_address));
}

std::string of_device_2(const ranked_device_2& one) {
  return fmt::format("{{\"rank_id\":{},\"local_id\":{},\"device_id\":{},\"level_list\":{}}}",
                     one.rank, one.local_id, one.device_id, lines_of(one.networks, of_network));
}

} // namespace

std::string text_of(const rank_table& table) {
  auto text = fmt::format("{{\"version\":\"{}\",\"status\":\"{}\"", name_of(table.version),
                          table.completed ? "completed" : "initializing");
  const bool in_super_pods = table.version == rank_table_version::v1_2;
  if (table.version == rank_table_version::v2_0)
    text += fmt::format(",\"rank_count\":{},\"rank_list\":{}", table.devices.size(),
                        lines_of(table.devices, of_device_2));
  else
    text += fmt::format(",\"server_count\":\"{}\",\"server_list\":{}", table.servers.size(),
                        lines_of(table.servers, [in_super_pods](const ranked_server& server) {
                          return of_server(server, in_super_pods);
                        }));
  if (in_super_pods)
    text += ",\"super_pod_list\":" + lines_of(table.super_pods, of_super_pod);
  return text + "}\n";
}

} // namespace troupe::topology
