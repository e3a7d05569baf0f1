#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::os {

/// From now, in seconds; negative: it is over.
struct certificate_time {
  std::int64_t begins_in = 0;
  std::int64_t ends_in = 0;
};

/// Of the first certificate of a PEM file. Nothing if the file holds none.
std::optional<certificate_time> time_of_certificate(const std::string& path);

} // namespace troupe::os
