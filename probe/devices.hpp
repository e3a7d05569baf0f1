#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// The devices of one node, behind a port.
///
/// A node whose third accelerator computes at half speed makes all other nodes wait, and no library
/// says so. What finds it must run on accelerators, on processors where there are none, and in
/// tests that have neither. So the probe asks this port, and knows no driver.
namespace troupe::probe {

struct device_facts {
  std::uint32_t index = 0;
  std::string name; ///< "NVIDIA H100 80GB HBM3"; "cpu"
  std::uint64_t memory_bytes = 0;
  /// By anything else, before the probe; 0 for processors.
  std::uint64_t memory_used_bytes = 0;
  /// What the device says is broken in it, one line. Empty: nothing.
  std::string health;
};

struct computed {
  duration took{}; ///< all products of the probe; the same work on each device of a kind
  double gigaflops = 0;
};

/// Which part this node's devices have in a group: ranks from `first_rank` on, of `ranks`.
struct group_place {
  std::uint32_t devices = 0, first_rank = 0, ranks = 0;
  std::uint64_t bytes_max = 0; ///< no message is larger
};

/// This node's devices in a group with those of other nodes, which do the same at the same time.
/// Each is done once to get ready, and then `repeats` times: the mean time of these. Error: it
/// failed, or what came out is wrong.
class device_group {
 public:
  virtual ~device_group() = default;

  virtual result<duration> all_reduce(std::uint64_t bytes, std::uint32_t repeats) = 0;
  /// `bytes`: of what comes out.
  virtual result<duration> all_gather(std::uint64_t bytes, std::uint32_t repeats) = 0;
};

/// Each call takes as long as the driver does, which may be for good, and a broken driver may end
/// the process in it: only the process is bounded (`probe_host`).
class device_port {
 public:
  virtual ~device_port() = default;

  /// False: the one device is this machine's processors, and there is nothing between devices.
  virtual bool has_accelerators() const = 0;
  /// With distinct indices. Error: they are there, and cannot be used at all.
  virtual result<std::vector<device_facts>> list() = 0;
  /// Makes products of matrices, and compares them with what they must be. Error: it did not
  /// compute, or not right.
  virtual result<computed> compute(std::uint32_t index) = 0;
  /// MB/s (10^6 bytes) of copies from one device's memory to another's.
  virtual result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) = 0;
  /// Links between two devices, direct or by a switch, that are up.
  virtual result<std::uint32_t> channels(std::uint32_t first, std::uint32_t second) = 0;
  /// The library for collectives that the devices have, with its version. Empty: none.
  virtual std::string collectives() = 0;
  /// By which a group finds together: bytes for its members only. One member makes it, whose
  /// process has to stay until all have joined.
  virtual result<std::string> make_group_key() = 0;
  /// Returns when the devices of all members have joined.
  virtual result<std::unique_ptr<device_group>> join_group(const std::string& key,
                                                           const group_place& place) = 0;
};

} // namespace troupe::probe
