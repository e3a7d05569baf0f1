#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// Where and how the nodes of a job meet.
namespace troupe::launch {

/// What `--rdzv-conf` can say; unknown keys are ignored, as torchrun does.
struct rendezvous_settings {
  std::optional<duration> join_timeout;
  std::optional<duration> last_call_timeout;
  /// How long to try to reach the master.
  std::optional<duration> read_timeout;
  /// How long a silent node stays a member: keep_alive_interval times keep_alive_max_attempt.
  std::optional<duration> lease;
  /// Whether this node runs the master; nothing: found out.
  std::optional<bool> is_host;
};

/// Both are served by the master; they differ in what torchrun lets them say.
enum class rendezvous_backend {
  fixed,   ///< "static": node ranks may be given, rank 0 is at the endpoint
  dynamic, ///< "c10d": ranks by order of arrival
};

struct rendezvous_options {
  rendezvous_backend backend = rendezvous_backend::fixed;
  /// One node with a master of its own on a port of its own: --standalone, or no address at all.
  bool standalone = false;
  ports::endpoint endpoint{"localhost", 0};
  /// The endpoint was given as --master-addr and --master-port: node rank 0 runs the master there.
  bool at_first_node = false;
  /// The option or variable that gave the endpoint, for people.
  std::string endpoint_from;
  bool endpoint_is_said = false; ///< by an option or a scheduler, and is no default
  bool found_by_scheduler = false;
  /// A variable names a master that stands alone: the job may become larger than --nnodes.
  bool master_is_named = false;
  /// Nothing: by order of arrival.
  std::optional<std::uint32_t> node_rank;
  bool node_rank_is_found = false; ///< in a scheduler's variables
  rendezvous_settings settings;
};

constexpr std::uint16_t rendezvous_port = 29'400;
constexpr std::uint16_t static_port = 29'500;

/// "N" or "MIN:MAX", 0 < MIN <= MAX.
result<std::pair<std::uint32_t, std::uint32_t>> parse_nodes(const std::string& text);

/// A name, an IPv4 address, or an IPv6 address with or without brackets; without the brackets.
result<std::string> parse_host(const std::string& text);

/// "host", "host:port" or "[v6]:port".
result<ports::endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port);

/// "k=v,k=v".
result<rendezvous_settings> parse_rendezvous_settings(const std::string& text);

/// What was typed, before it means anything.
struct rendezvous_arguments {
  std::string backend = "static", endpoint, conf;
  bool standalone = false;
  std::optional<std::int64_t> node_rank, master_port;
  std::optional<std::string> master_addr;
};

struct scheduler_environment;

/// torchrun's rules for which nodes meet where; what no option says, the scheduler environment may.
result<rendezvous_options> derive_rendezvous(const rendezvous_arguments& w, std::uint32_t nodes_max,
                                             const result<scheduler_environment>& around);

} // namespace troupe::launch
