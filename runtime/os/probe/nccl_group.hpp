#pragma once

#include "probe/devices.hpp"
#include "runtime/os/probe/cuda_driver.hpp"
#include "runtime/os/probe/nccl.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// This process's devices, one communicator of NCCL for each, by their contexts. Both libraries
/// must stay as long as the group does.
///
/// NCCL asks CUDA's runtime which device is current. That is the one whose context is, as long as
/// it is the device's primary one.
result<std::unique_ptr<probe::device_group>>
join_nccl_group(const cuda_driver& driver, const nccl& library,
                const std::vector<cuda::context>& devices, const std::string& key,
                const probe::group_place& place);

/// The bytes of a unique id.
result<std::string> make_nccl_key(const nccl& library);

} // namespace troupe::os
