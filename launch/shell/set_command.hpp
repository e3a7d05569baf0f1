#pragma once

#include "launch/options/options.hpp"

#include <map>
#include <string>

namespace troupe::launch {

/// The files of settings of this user's workers on this machine, each with the job's id: workers
/// of a launcher with --auto_tunning have its path in their environment. `proc` is where the
/// kernel shows processes.
std::map<std::string, std::string> tuning_files(const std::string& proc = "/proc");

/// `actor-shell set batch-size=N`: writes it to the file that the data loaders read. No master is
/// asked: the right to write the file is that of the user whose workers read it. Answers the exit
/// code.
int set_batch_size(const shell_options& o);

} // namespace troupe::launch
