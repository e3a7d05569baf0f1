#pragma once

#include "launch/options/streams.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/log/logs.hpp"
#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// The command lines of the programs. Names and meanings are torchrun's where it has them.
namespace troupe::launch {

/// Options every program has.
struct common_options {
  os::verbosity talk = os::verbosity::normal;
  std::string json_log;
  /// Certificate files; all three or none.
  std::string certificate;
  std::string key;
  std::string authority;
};

/// What `--rdzv-conf` can say; unknown keys are ignored, as torchrun does.
struct rendezvous_settings {
  std::optional<duration> join_timeout;
  std::optional<duration> last_call_timeout;
  /// How long to try to reach the master.
  std::optional<duration> read_timeout;
};

struct launcher_options {
  common_options common;
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  std::uint32_t processes_per_node = 1;
  std::optional<std::uint32_t> node_rank;
  std::optional<ports::endpoint> rdzv_endpoint;
  std::string master_addr = "127.0.0.1";
  std::optional<std::uint16_t> master_port;
  bool standalone = false;
  std::string rdzv_id = "none";
  rendezvous_settings rendezvous;
  std::uint32_t max_restarts = 0;
  std::string role = "default";
  stream_options streams;
  duration shutdown_timeout{};
  std::string local_addr;
  std::string node_name;
  std::string journal;
  std::string outcome_file;
  bool module = false;
  bool no_python = false;
  /// `--run-path`: the script runs by runpy in a child of a Python that is already there; beats
  /// `no_python` and `module`.
  bool run_path = false;
  std::vector<std::string> command; ///< script (or module, or program) and its arguments
};

struct master_program_options {
  common_options common;
  ports::endpoint listen{"127.0.0.1", 29400};
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  std::string rdzv_id = "none";
  rendezvous_settings rendezvous;
  std::uint32_t max_restarts = 0;
  std::string journal;
};

struct shell_options {
  common_options common;
  ports::endpoint master{"127.0.0.1", 29400};
};

/// The user asked for text (--help, --version) instead of a run.
struct just_print {
  std::string text;
};

template<class Options>
using parsed = std::variant<Options, just_print, error>;

/// `environment` gives defaults: PET_NNODES for --nnodes and so on. `cpus` and `gpus` are this
/// machine's, for `--nproc-per-node auto`.
struct machine_facts {
  std::map<std::string, std::string> environment;
  unsigned cpus = 1;
  unsigned gpus = 0;
};

parsed<launcher_options> parse_launcher(const std::vector<std::string>& arguments,
                                        const machine_facts& machine);
parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine);
parsed<shell_options> parse_shell(const std::vector<std::string>& arguments,
                                  const machine_facts& machine);

// The grammars, each on its own.

/// "N" or "MIN:MAX", 0 < MIN <= MAX.
result<std::pair<std::uint32_t, std::uint32_t>> parse_nodes(const std::string& text);
/// "host", "host:port" or "[v6]:port".
result<ports::endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port);
/// "k=v,k=v".
result<rendezvous_settings> parse_rendezvous_settings(const std::string& text);
/// A number, "cpu", "gpu" or "auto".
result<std::uint32_t> parse_processes(const std::string& text, const machine_facts& machine);

} // namespace troupe::launch
