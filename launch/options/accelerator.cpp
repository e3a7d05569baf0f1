#include "launch/options/accelerator.hpp"

#include "launch/options/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

const std::array<accelerator_facts, accelerators>& all_accelerators() {
  static const std::array<accelerator_facts, accelerators> all{{
      {accelerator::nvidia,
       "nvidia.com/gpu",
       "NVIDIA GPU",
       "/dev/nvidia0",
       {"CUDA_VISIBLE_DEVICES"},
       "",
       "cuda",
       "nccl"},
      {accelerator::ascend,
       "ascend-npu",
       "Ascend NPU",
       "/dev/davinci0",
       {"ASCEND_RT_VISIBLE_DEVICES"},
       "torch_npu",
       "npu",
       "hccl"},
      {accelerator::mthreads,
       "mthreads.com/gpu",
       "Moore Threads GPU",
       "/dev/mtgpu.0",
       {"MUSA_VISIBLE_DEVICES"},
       "torch_musa",
       "musa",
       "mccl"},
      {accelerator::metax,
       "metax-tech.com/gpu",
       "MetaX GPU",
       "/dev/mxcd and /dev/dri/renderD128",
       {"MACA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
       "",
       "cuda",
       "nccl"},
  }};
  return all;
}

const accelerator_facts& facts_about(accelerator kind) {
  return all_accelerators()[static_cast<std::size_t>(kind)];
}

std::vector<std::string> accelerator_words() {
  std::vector<std::string> words;
  for (const auto& facts : all_accelerators())
    words.emplace_back(facts.word);
  return words;
}

result<accelerator> find_accelerator(const std::optional<std::string>& said,
                                     const devices_seen& seen) {
  const auto count = [&seen](accelerator kind) {
    const auto found = seen.find(kind);
    return found == seen.end() ? 0u : found->second;
  };
  // Files of devices are in many a container whose training is on processors.
  if (!said)
    return accelerator::nvidia;
  for (const auto& facts : all_accelerators()) {
    if (*said != facts.word)
      continue;
    // dlrover-run says nvidia.com/gpu by default, and trains on processors where there is none.
    if (facts.kind != accelerator::nvidia && count(facts.kind) == 0)
      return failure(
          errc::invalid,
          fmt::format("--accelerator {}: this machine shows no {} ({}); give its devices "
                      "to the container, or leave the option out",
                      *said, facts.device, facts.nodes));
    return facts.kind;
  }
  return failure(errc::invalid, fmt::format("--accelerator: '{}' is not known", *said));
}

std::string visible_variable(accelerator kind,
                             const std::map<std::string, std::string>& environment) {
  const auto& names = facts_about(kind).visible;
  for (const auto* name : names)
    if (environment.count(name) != 0)
      return name;
  return names.front();
}

unsigned visible_devices(accelerator kind, const devices_seen& seen,
                         const std::map<std::string, std::string>& environment) {
  const auto found = seen.find(kind);
  const auto there = found == seen.end() ? 0u : found->second;
  const auto selection = environment.find(visible_variable(kind, environment));
  if (selection == environment.end())
    return there;
  // The entries up to the first that names no device. CUDA's runtime reads over blanks, and knows
  // devices by unique names as well; Huawei's stops at everything but digits and commas.
  const bool ascend = kind == accelerator::ascend;
  std::vector<std::string> names;
  for (const auto& word : split(selection->second, ',')) {
    const auto name = ascend ? word : stripped(word);
    const auto number = digits(name);
    const bool by_uuid =
        !ascend && (name.compare(0, 4, "GPU-") == 0 || name.compare(0, 4, "MIG-") == 0);
    if ((!by_uuid && (!number || *number >= there)) ||
        std::find(names.begin(), names.end(), name) != names.end())
      break;
    names.push_back(name);
  }
  return static_cast<unsigned>(names.size());
}

std::optional<std::string> check_remark(accelerator kind) {
  if (kind == accelerator::nvidia)
    return std::nullopt;
  const auto& facts = facts_about(kind);
  return fmt::format("--network-check looks at each {} through PyTorch, and at nodes with each "
                     "other over TCP: {} is not measured",
                     facts.device, facts.backend);
}

result<std::optional<std::uint16_t>>
hccl_port_wanted(accelerator kind, std::int64_t training_port,
                 const std::map<std::string, std::string>& environment) {
  if (kind != accelerator::ascend)
    return std::optional<std::uint16_t>{};
  // What a user says to HCCL is left to it.
  const auto variable = environment.find(hccl_port_variable);
  constexpr std::int64_t most = 65'536 - hccl_ports, least = 1'024;
  if (training_port == 0 || (variable != environment.end() && !variable->second.empty()))
    return std::optional<std::uint16_t>{};
  if (training_port < least || training_port > most)
    return failure(errc::invalid,
                   fmt::format("--training_port: '{}' is no port from {} to {} ({} follow it for "
                               "HCCL; 0: HCCL picks them)",
                               training_port, least, most, hccl_ports - 1));
  return std::optional(static_cast<std::uint16_t>(training_port));
}

} // namespace troupe::launch
