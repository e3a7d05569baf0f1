#pragma once

#include "launch/options.hpp"
#include "runtime/base/result.hpp"

#include <string>

/// What the programs ask this machine before they start.
namespace troupe::launch {

machine_facts this_machine();

std::string host_name();

/// From the kernel's generator.
std::uint64_t random_seed();

/// The address of this machine from which `host` is reached, in numbers; "127.0.0.1" if that is
/// how, or if the name does not resolve (yet).
std::string address_towards(const std::string& host);

} // namespace troupe::launch
