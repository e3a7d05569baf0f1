#pragma once

#include "runtime/ports/worker_links.hpp"

#include <string>

namespace troupe::os {

/// Writes `flight_record_<rank>.json` into `<directory>/<dump>`, where the stacks of the same dump
/// are, and answers that. May wait for a disk.
result<std::string> write_records(const std::string& directory, std::uint64_t dump,
                                  const std::vector<ports::flight_record>& records);

} // namespace troupe::os
