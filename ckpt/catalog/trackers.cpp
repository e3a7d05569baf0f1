#include "ckpt/catalog/trackers.hpp"

namespace troupe::ckpt {

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
    all.push_back({"latest_checkpointed_iteration.txt", std::to_string(step)});
    break;
  case framework::deepspeed:
    // Read as a tag: a directory's name.
    all.push_back({"latest", step_directory});
    break;
  }
  // Last: who reads both believes this one.
  all.push_back({"dlrover_latest.txt", std::to_string(step)});
  return all;
}

} // namespace troupe::ckpt
