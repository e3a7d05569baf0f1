#pragma once

#include "messages/msg.hpp"
#include "runtime/base/random.hpp"

#include <cstdint>
#include <vector>

namespace troupe::messages::testing {

/// Every kind there is, in the order of kinds.hpp.
std::vector<std::uint64_t> every_kind();

/// A message with every field of its schema set, to values drawn from `chance`: small ones and the
/// largest, empty lists and longer ones, texts beyond ASCII.
any_msg sample(std::uint64_t kind, random_source& chance);

/// Reads everything in an admitted message as its receiver would, through the generated readers.
/// Throws kj::Exception where a receiver would get one. Nothing to do for an unknown kind.
void read_everything(const any_msg& m);

} // namespace troupe::messages::testing
