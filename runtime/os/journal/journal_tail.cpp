#include "runtime/os/journal/journal_tail.hpp"

#include <boost/crc.hpp>

#include <array>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::os {

namespace {

/// Mark, journal, records, checksum: 8 bytes each, as this machine writes them. A journal does not
/// move to a machine of another kind while its job runs.
using words = std::array<std::uint64_t, 4>;
constexpr std::uint64_t mark = 0x314c494154505254; // "TRPTAIL1"

std::uint64_t checksum(const words& w) {
  boost::crc_32_type crc;
  crc.process_bytes(w.data(), 3 * sizeof(w[0]));
  return crc.checksum();
}

} // namespace

std::optional<journal_tail::count> journal_tail::read(const std::string& journal) {
  const unique_fd file(::open(path_of(journal).c_str(), O_RDONLY | O_CLOEXEC));
  words w{};
  if (!file || ::pread(file.get(), w.data(), sizeof(w), 0) != sizeof(w) || w[0] != mark ||
      w[3] != checksum(w))
    return std::nullopt;
  return count{w[1], w[2]};
}

journal_tail::journal_tail(const std::string& journal)
    : file_(::open(path_of(journal).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {}

/// A count that cannot be written stays too low, which is allowed.
void journal_tail::write(const count& c) const {
  if (!file_)
    return;
  words w{mark, c.journal, c.records, 0};
  w[3] = checksum(w);
  (void)!::pwrite(file_.get(), w.data(), sizeof(w), 0);
}

} // namespace troupe::os
