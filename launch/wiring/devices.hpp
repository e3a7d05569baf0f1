#pragma once

#include "launch/options/options.hpp"
#include "launch/worker/worker_environment.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

/// The accelerators of this machine, as far as files tell of them: no vendor's library is loaded.
namespace troupe::launch {

/// By the device files below `root`, which is "/" but for tests. Of a container it counts those
/// that were given to it.
devices_seen look_for_devices(const std::string& root);

/// The first of `count` ports in a row, from `wanted` on, that are all free; nothing: there are
/// none among the next ten thousand.
std::optional<std::uint16_t> free_ports_from(std::uint16_t wanted, std::uint16_t count,
                                             const std::function<bool(std::uint16_t)>& is_free);
/// Whether a process may listen there, at all addresses.
bool port_is_free(std::uint16_t port);

/// Decides which ports this node's workers are told for HCCL. On a job of one node others are taken
/// where those that were asked for are in use, with a remark. Of several nodes each would have to
/// take the same ones: there it is only told, in a remark.
void take_hccl_port(launcher_options& o, worker_contract& contract,
                    const std::function<bool(std::uint16_t)>& is_free = port_is_free);

/// How `troupe-probe` looks at the devices of another vendor than NVIDIA: the value of
/// TROUPE_PROBE_TORCH. Nothing: by NVIDIA's libraries.
std::optional<std::string> probed_by_torch(const launcher_options& o);

/// What --accelerator needs of the workers' Python and does not find there; nothing: all is there,
/// or workers are no Python programs.
std::optional<std::string> plugin_missing(const launcher_options& o);

} // namespace troupe::launch
