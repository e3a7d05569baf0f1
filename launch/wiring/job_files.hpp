#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/result.hpp"

namespace troupe::launch {

/// `words` with the files that they name, for a master on a machine that does not have them.
///
/// The file of --elasticity-config must be there, and small enough for a hello: the error names it.
/// The file of --topology may be written later, and then only the master's own machine can tell; so
/// it is sent where it is there and small enough.
result<messages::job_words> with_files(messages::job_words words);

} // namespace troupe::launch
