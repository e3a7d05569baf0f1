#pragma once

#include "probe/devices.hpp"

#include <memory>
#include <string>

namespace troupe::os {

/// NVIDIA's devices, by CUDA's driver, cuBLAS and NVML, as far as those are there; `own_program` is
/// where libraries of a Python environment are looked for. Null: this node has none, or training
/// would see none (CUDA_VISIBLE_DEVICES). Error: it has some, and their driver does not work.
result<std::unique_ptr<probe::device_port>> cuda_devices(const std::string& own_program);

} // namespace troupe::os
