#pragma once

#include "runtime/base/result.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// `--accelerator`: which devices a node trains on, and the names by which each vendor's software
/// knows them. The words are DLRover's.
namespace troupe::launch {

enum class accelerator {
  nvidia,
  ascend,   ///< Huawei
  mthreads, ///< Moore Threads
  metax,    ///< MetaX, whose PyTorch calls its devices "cuda" and its collectives "nccl"
};

struct accelerator_facts {
  accelerator kind;
  const char* word; ///< of `--accelerator`
  const char* device;
  /// The files by which devices are counted, for people.
  const char* nodes;
  /// The variables that select devices for a process; the first that is set counts.
  std::vector<const char*> visible;
  /// The Python module that teaches PyTorch these devices; empty: its build has them.
  const char* plugin;
  const char* torch_device; ///< "npu" of torch.device("npu:0")
  const char* backend;      ///< of torch.distributed
};

constexpr std::size_t accelerators = 4;
const std::array<accelerator_facts, accelerators>& all_accelerators();
const accelerator_facts& facts_about(accelerator kind);
std::vector<std::string> accelerator_words();

/// How many devices of each kind this machine shows.
using devices_seen = std::map<accelerator, unsigned>;

/// The kind that was said; else the first of which there is a device; else NVIDIA's. Error: that
/// word is not known, or this machine shows no such device.
result<accelerator> find_accelerator(const std::optional<std::string>& said,
                                     const devices_seen& seen);

/// As a process counts them, after the variables that select devices.
unsigned visible_devices(accelerator kind, const devices_seen& seen,
                         const std::map<std::string, std::string>& environment);

/// How `--network-check` looks at devices of this kind, where that is not by their vendor's own
/// libraries: one line.
std::optional<std::string> check_remark(accelerator kind);

/// The variable that selects devices here: the first that is set, else the vendor's own.
std::string visible_variable(accelerator kind,
                             const std::map<std::string, std::string>& environment);

/// HCCL listens at so many ports from its first one on, one for each device of a machine.
constexpr std::uint16_t hccl_ports = 16;
constexpr auto hccl_port_variable = "HCCL_IF_BASE_PORT";
/// The first port that HCCL is asked to use. Nothing: other devices, 0, or the user has said it to
/// HCCL by its own variable, which goes before `--training_port`, as in DLRover. Error: it is no
/// port that so many follow.
result<std::optional<std::uint16_t>>
hccl_port_wanted(accelerator kind, std::int64_t training_port,
                 const std::map<std::string, std::string>& environment);

} // namespace troupe::launch
