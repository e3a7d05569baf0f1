#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <string>

namespace troupe::launch {

/// The living tree, one line per actor: name, kind, what it is doing, uptime and restarts where
/// there were any.
std::string tree_text(const messages::msg<messages::TreeReport>& report);

} // namespace troupe::launch
