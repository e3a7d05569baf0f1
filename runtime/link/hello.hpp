#pragma once

#include "messages/membership.capnp.h"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"

#include <string>
#include <vector>

namespace troupe::link {

/// Whether the names in the peer's certificate allow what its hello says: to be the node of that
/// name, or to look at the job or change it (role_names.hpp).
result<void> check_names(const std::vector<std::string>& proven, messages::Hello::Reader hello);

/// A hello that has no address gets this one; one that has keeps it.
messages::msg<messages::Hello> with_address(const messages::msg<messages::Hello>& hello,
                                            const std::string& address);

} // namespace troupe::link
