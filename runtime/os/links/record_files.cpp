#include "runtime/os/links/record_files.hpp"

#include "runtime/os/whole_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace troupe::os {

result<std::string> write_records(const std::string& directory, std::uint64_t dump,
                                  const std::vector<ports::flight_record>& records) {
  if (directory.empty())
    return failure(errc::unavailable, "there is no directory for them");
  const auto where = fmt::format("{}/{}", directory, dump);
  std::error_code error;
  std::filesystem::create_directories(where, error);
  if (error)
    return failure(errc::unavailable, fmt::format("{}: {}", where, error.message()));
  for (const auto& record : records) {
    const auto name = fmt::format("{}/flight_record_{}.json", where, record.rank);
    if (auto written = write_whole(name, record.json); !written)
      return tl::make_unexpected(written.error());
  }
  return where;
}

} // namespace troupe::os
