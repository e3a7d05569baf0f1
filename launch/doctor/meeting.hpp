#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"
#include "launch/wiring/placement.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Whether the nodes of the job will meet: names, the endpoint, its port.
namespace troupe::launch::doctor {

struct host_facts {
  std::uint32_t nodes = 1;
  std::string name;
  std::string unresolved; ///< why this machine's own name leads to no address; empty: it does
  bool ours = false;      ///< one of its addresses is this machine's
  bool loopback_only = false;
};
host_facts look_at_host(const launcher_options& o, const machine_facts& machine);
finding judge(const host_facts& seen);

/// A process that listens.
struct port_owner {
  int pid = 0;
  std::string name;
};

struct endpoint_facts {
  std::uint32_t nodes = 1;
  placement where;
  std::string from;       ///< the option or variable that said so
  duration patience{};    ///< so long a launcher waits for a name or a master
  std::string unresolved; ///< why its name leads to no address
  bool ours = false;      ///< the address is this machine's
  bool loopback = false;  ///< only processes of this machine reach it
  /// Port 0 is none yet.
  std::string cannot_listen; ///< where this launcher might run the master: why it could not
  std::optional<port_owner> owner;
  std::optional<std::string> cannot_connect; ///< nothing: not tried; empty: something listens
  std::optional<std::string> no_master;      ///< why what listens is no master of ours; or empty
  std::string job;                           ///< of the master that answered
  /// Ports that the kernel gives to outgoing connections.
  std::uint16_t outgoing_from = 0, outgoing_to = 0;
  bool outgoing_avoids_it = false; ///< reserved
};
endpoint_facts look_at_endpoint(const launcher_options& o, const machine_facts& machine);
/// "endpoint" and, where there is one to judge, "port".
findings judge(const endpoint_facts& seen);

} // namespace troupe::launch::doctor
