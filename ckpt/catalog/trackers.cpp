#include "ckpt/catalog/trackers.hpp"

namespace troupe::ckpt {

namespace {

constexpr const char* of_megatron = "latest_checkpointed_iteration.txt";
constexpr const char* of_deepspeed = "latest";
constexpr const char* of_dlrover = "dlrover_latest.txt";

} // namespace

const char* layout_of(framework whose) {
  switch (whose) {
  case framework::ddp:
    break;
  case framework::fsdp:
    return "fsdp";
  case framework::megatron:
    return "megatron";
  case framework::deepspeed:
    return "deepspeed";
  }
  return "ddp";
}

std::vector<tracker> trackers_of(framework whose, std::uint64_t step,
                                 const std::string& step_directory) {
  std::vector<tracker> all;
  switch (whose) {
  case framework::ddp:
  case framework::fsdp:
    break;
  case framework::megatron:
    // Read as a number, or the word "release", which is not ours to write.
    all.push_back({of_megatron, std::to_string(step)});
    break;
  case framework::deepspeed:
    // Read as a tag: a directory's name.
    all.push_back({of_deepspeed, step_directory});
    break;
  }
  // Last: a reader of both believes this one.
  all.push_back({of_dlrover, std::to_string(step)});
  return all;
}

std::vector<std::string> known_trackers() {
  return {of_megatron, of_deepspeed, of_dlrover};
}

bool is_tracker(std::string_view name) {
  return name == of_megatron || name == of_deepspeed || name == of_dlrover;
}

} // namespace troupe::ckpt
