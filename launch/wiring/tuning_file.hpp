#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <string>

/// The file that DLRover's data loader reads (DLROVER_PARAL_CONFIG_PATH), and troupe.elastic's too.
/// Its members are those of DLRover's ParallelConfig. A loader takes a batch size with a larger
/// version than the last one. Nothing computes settings: a person says them (actor-shell set).
namespace troupe::launch {

/// No setting: loaders keep what their script says.
std::string tuning_defaults();

/// Writes the defaults to `path`, for this user alone, unless there is a file already: a file that
/// several nodes share, or that another run has left, keeps its settings.
result<void> make_tuning_file(const std::string& path);

constexpr std::uint32_t batch_size_max = 1u << 20;

struct tuning_change {
  std::string text;         ///< what to write
  std::int64_t before = 0;  ///< the size in the file; 0: none
  std::int64_t version = 0; ///< of the new size
};
/// `text` with another batch size and the next version; all else stays. Error: it is no file of
/// that kind.
result<tuning_change> with_batch_size(const std::string& text, std::uint32_t size);

} // namespace troupe::launch
