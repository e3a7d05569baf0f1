#pragma once

#include "runtime/base/result.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::kube {

/// What a journal in a ConfigMap holds, and its form there:
///
///     data:        version, job, uid, run, epoch, owner, first, last
///     binaryData:  records — for each one  u32 bytes  u32 checksum  the record
///
/// Numbers are little-endian. A record's checksum (CRC-32) covers its number and the checksum
/// before it, so that a record that is changed, taken out or put in is an error that names it.
struct journal_image {
  std::string job;
  std::string uid;                  ///< of the ElasticJob; empty: of none, or of an older version
  std::optional<std::uint64_t> run; ///< as runtime/os/journal/journal_opening.hpp has it
  std::uint64_t term = 0;
  std::string owner;       ///< the opening that writes to it
  std::uint64_t first = 1; ///< number of the first record that is kept
  std::uint64_t last = 0;
  std::uint32_t checksum = 0; ///< of the last record
  std::string records;        ///< framed

  void append(std::string_view record);
  /// `kept` take the place of all records. The next one is counted as before.
  void replace(const std::vector<std::string>& kept);

  friend bool operator==(const journal_image& a, const journal_image& b) {
    return a.job == b.job && a.uid == b.uid && a.run == b.run && a.term == b.term &&
           a.owner == b.owner && a.first == b.first && a.last == b.last && a.records == b.records;
  }
};

/// How much larger the image becomes by a record.
std::size_t framed_size(std::size_t record);

/// Oldest first. `invalid`, and which record is damaged or missing.
result<std::vector<std::string>> records_of(const journal_image& image);

/// Puts the image into a ConfigMap; what else is there stays.
void put(boost::json::object& config_map, const journal_image& image);

/// Nothing: the ConfigMap is empty, as a user may have made it. `invalid`: it is no journal, or
/// damaged; `refused`: it is of a later version.
result<std::optional<journal_image>> image_in(const boost::json::value& config_map);

} // namespace troupe::kube
