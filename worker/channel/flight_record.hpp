#pragma once

#include "runtime/base/result.hpp"

#include <string>

namespace troupe::worker {

/// PyTorch's record of its last collectives, as the JSON that PyTorch makes of it. Takes no lock of
/// Python's, so that a process answers whose threads all wait for that. `absent` where this PyTorch
/// has none.
result<std::string> flight_record();

} // namespace troupe::worker
