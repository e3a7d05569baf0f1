#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::ckpt {

/// The framework whose files a checkpoint consists of, and which looks for the newest.
enum class framework : std::uint8_t { ddp, fsdp, megatron, deepspeed };

/// As manifests name it: "ddp".
const char* layout_of(framework whose);

/// A small file beside the steps that names the newest complete one, for readers who know nothing
/// of manifests.
struct tracker {
  std::string name;
  std::string content; ///< exactly, without a line's end
};

/// Those that a framework's own loader reads, and DLRover's, which is always there.
std::vector<tracker> trackers_of(framework whose, std::uint64_t step,
                                 const std::string& step_directory);

/// The names of all that there are.
std::vector<std::string> known_trackers();
/// Whether some framework's tracker is called so.
bool is_tracker(std::string_view name);

} // namespace troupe::ckpt
