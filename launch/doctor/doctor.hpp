#pragma once

#include "launch/doctor/examination.hpp"
#include "launch/options/options.hpp"
#include "runtime/os/process/local_services.hpp"

#include <vector>

namespace troupe::launch::doctor {

/// What is looked at for this job on this machine, in the order in which it is shown. `open_files`:
/// this process's limit, which was raised as a launcher raises its own.
std::vector<check> checks_for(const doctor_options& o, const machine_facts& machine,
                              const os::open_files_limit& open_files);

} // namespace troupe::launch::doctor
