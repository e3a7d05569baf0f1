#include "runtime/os/links/record_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
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
    errno = 0;
    std::ofstream file(name, std::ios::binary | std::ios::trunc);
    file.write(record.json.data(), static_cast<std::streamsize>(record.json.size()));
    file.close();
    if (!file) {
      const int why = errno;
      std::filesystem::remove(name, error); // half a record is none
      return failure(errc::unavailable, fmt::format("{}: {}", name, std::strerror(why)));
    }
  }
  return where;
}

} // namespace troupe::os
