#pragma once

#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/result.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The `.stacktrace` files of DLRover's xpu_timer: what gdb and py-spy said of one rank, as
/// protobuf. Jobs that have such files can be looked at without xpu_timer.
namespace troupe::diag {

/// "00003-00008.stacktrace": the rank and the world are in the name alone.
std::optional<dump_name> xpu_timer_named(std::string_view file);

/// Reads all that can be read into `out`, whose rank and world are set. An error says where the
/// file is cut off or damaged; what came before is in `out` nevertheless.
result<void> read_xpu_timer(std::string_view bytes, process_stacks& out);

} // namespace troupe::diag
