#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "messages/stacks.capnp.h"
#include "runtime/base/result.hpp"

/// The stacks of one process as a message. A frame is said once, and a thread's stack is a list of
/// numbers: so four thousand processes are read as fast as a disk gives them.
namespace troupe::diag {

/// What does not fit into a message is left out, and said in `missing`.
void write_process(const process_stacks& process, messages::ProcessStacks::Builder out);

/// Any message gives stacks or one line of what is wrong with it.
result<process_stacks> read_process(messages::ProcessStacks::Reader in);

/// As `merged_stacks::add` of what `read_process` gives, without a copy of every frame. What is
/// wrong with the message leaves `into` as it was.
result<void> add_process(merged_stacks& into, messages::ProcessStacks::Reader in);

} // namespace troupe::diag
