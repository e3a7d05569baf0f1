#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <string>

namespace troupe::launch {

/// The end of a failed job, for people: the root cause first, then what else failed, as rank, node,
/// pid, exit code and message. `what` is the script's name.
std::string failure_summary(const std::string& what,
                            const messages::msg<messages::Conclude>& verdict);

/// What a shell would say of the process that failed first: its exit code, 128 + n for signal n,
/// and 1 if there was none.
int exit_code_of(const messages::msg<messages::Conclude>& verdict);

} // namespace troupe::launch
