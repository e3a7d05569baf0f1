#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/result.hpp"

#include <string>

/// What the programs ask this machine before they start.
namespace troupe::launch {

machine_facts this_machine();

std::string host_name();

/// From the kernel's generator.
std::uint64_t random_seed();

} // namespace troupe::launch
