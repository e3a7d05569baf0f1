#pragma once

#include "runtime/base/result.hpp"
#include "topology/located_json.hpp"
#include "topology/network_tree.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Rank tables: the files by which Ascend's collective library knows which device is which rank.
namespace troupe::topology {

enum class rank_table_version : std::uint8_t { v1_0, v1_2, v2_0 };

/// A device of a server; versions 1.0 and 1.2. Texts that may be missing are empty then.
struct ranked_device {
  std::uint32_t device_id = 0;
  std::string device_ip;
  std::uint32_t rank = 0;
  std::string super_device_id; ///< version 1.2 only, which must have it
  std::string device_port, backup_device_ip, backup_device_port;
};

struct ranked_server {
  std::string server_id;
  std::string host_ip, container_ip, hardware_type; ///< may be missing
  std::vector<ranked_device> devices;
};

/// Servers whose devices reach each other without the network between super pods.
struct super_pod {
  std::string super_pod_id;
  std::vector<std::string> servers; ///< their ids
};

/// A device of version 2.0.
struct device_address {
  std::string addr_type, addr;
  std::vector<std::string> ports;
  std::string plane_id;
};

struct device_network {
  std::uint32_t net_layer = 0;
  std::string net_instance_id;
  bool clos = false; ///< net_type: CLOS, else TOPO_FILE_DESC
  std::string net_attr;
  std::vector<device_address> addresses;
};

struct ranked_device_2 {
  std::uint32_t rank = 0, local_id = 0, device_id = 0;
  std::vector<device_network> networks;
};

struct rank_table {
  rank_table_version version = rank_table_version::v1_0;
  /// Its writer has said that all is there. If not, nothing else of it is read: wait, and read it
  /// again.
  bool completed = false;
  std::vector<ranked_server> servers;   ///< versions 1.0 and 1.2
  std::vector<super_pod> super_pods;    ///< version 1.2
  std::vector<ranked_device_2> devices; ///< version 2.0
};

/// Compressed or as it is. A table that says "completed" must be: as many servers or ranks as it
/// says, each rank from 0 on once, no address of a device twice, in version 1.2 every server in one
/// super pod. Members that are not described here do not matter, and `text_of` does not write them.
result<rank_table> rank_table_of(std::string_view text);
result<rank_table> rank_table_of(const json_value& document);

/// As it is read; not compressed. Precondition: the parts of its version only.
std::string text_of(const rank_table& table);

/// Servers by their ids and addresses, below the super pods of version 1.2. Version 1.0 knows no
/// switches. Refuses version 2.0, which names no servers, and a table that is not completed.
result<network_tree> tree_of(const rank_table& table);

} // namespace troupe::topology
