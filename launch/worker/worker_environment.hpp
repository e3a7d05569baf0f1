#pragma once

#include "actors/node_supervisor/training_program.hpp"
#include "launch/options/options.hpp"
#include "launch/worker/stop_files.hpp"
#include "launch/worker/worker_files.hpp"
#include "runtime/ports/process.hpp"

#include <map>
#include <string>
#include <vector>

/// The contract between the launcher and a training process: command, environment, files. As
/// torchrun documents and does it.
namespace troupe::launch {

struct worker_contract {
  std::string job;
  std::uint32_t max_restarts = 0;
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  /// What runs the script.
  std::string python = "python3";
  bool virtual_local_rank = false;
  bool local_rank_argument = false;
  /// The variable that selects devices for a process.
  std::string visible_variable = "CUDA_VISIBLE_DEVICES";
  /// HCCL_IF_BASE_PORT; 0: as the user has it.
  std::uint16_t hccl_port = 0;
  /// DLROVER_PARAL_CONFIG_PATH; empty: as the user has it.
  std::string tuning_file;
  /// TORCHELASTIC_SIGNALS_TO_HANDLE.
  std::string signals = signals_by_default;
  std::optional<unsigned> omp_threads;
  /// The interface by which this machine reaches link-local addresses; empty if it uses none.
  std::string zone;
  stop_files stops;
  /// TROUPE_UCP_DEVICE_TYPE; empty: not set.
  std::string ucp_device;
  /// `--numa-binding`: the CPUs of each local rank as numactl takes them; empty: not bound.
  std::vector<std::string> cpus;
  /// `--membind-policy`: numactl's word for the memory of each of these; empty: any memory.
  std::vector<std::string> memory;
  /// Of each local rank's memory for snapshots of its state; may be fewer.
  std::vector<std::vector<int>> checkpoint_memory;
  /// The same for pieces of other nodes' snapshots, and the port at which those are given to this
  /// node; 0: it takes none.
  std::vector<std::vector<int>> memory_for_others;
  std::uint16_t copies_port = 0;
  /// Of each local rank's page of progress; may be fewer.
  std::vector<int> progress_memory;
  /// The process whose children may look at workers; 0: none is known.
  std::int32_t keeper = 0;
  /// Where workers reach their node supervisor; empty: nowhere.
  std::string channel;
  /// The directory whose `sitecustomize` has a Python worker report its progress; empty: none does.
  std::string hooks;
  /// The library that times calls of CUDA and NCCL, and where it leaves its figures; empty: none.
  std::string trace_library, trace_directory;
  /// Workers have RANK_AFTER_ACC and MASTER_INDEX; and where the files of these names go, if
  /// anywhere.
  bool tells_rank_after_topology = false;
  std::string rank_files;
  output_contract output;
  std::vector<std::string> command;
  /// The launcher's own environment, passed through under what the contract sets.
  std::map<std::string, std::string> environment;
};

worker_contract contract_of(const launcher_options& o,
                            const std::map<std::string, std::string>& environment,
                            const std::string& host, const std::string& run_directory);

/// The interface by which a node reaches the others, from its own address or the one it dials:
/// "eth0" of fe80::1%eth0.
std::string zone_towards(const std::string& own_address, const std::string& master_host);

/// What cannot work for `processes` local ranks under this contract; found before anybody waits for
/// this node.
std::optional<std::string> contract_validation_error(const worker_contract& c,
                                                     std::uint32_t processes);

/// What to run for one place in a generation. Pure.
ports::process_spec worker_spec(const worker_contract& c, const actors::assignment& a);

} // namespace troupe::launch
