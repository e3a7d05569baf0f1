#include "ckpt/snapshot/archive.hpp"
#include "ckpt/snapshot/bytes.hpp"
#include "ckpt/snapshot/zip.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <optional>

namespace troupe::ckpt {

using namespace zip;

namespace {

/// The snapshot with bounds: reading outside is an answer, not an accident.
class reader {
 public:
  explicit reader(std::string_view snapshot) : snapshot_(snapshot) {}

  std::uint64_t size() const { return snapshot_.size(); }
  bool has(std::uint64_t at, std::uint64_t bytes) const {
    return at <= snapshot_.size() && bytes <= snapshot_.size() - at;
  }
  bool signed_as(std::uint64_t at, std::uint32_t sign, std::uint64_t bytes) const {
    return has(at, bytes) && take<std::uint32_t>(snapshot_, at) == sign;
  }
  template<class T>
  T number(std::uint64_t at) const {
    return take<T>(snapshot_, at);
  }
  std::string_view text(std::uint64_t at, std::uint64_t bytes) const {
    return snapshot_.substr(at, bytes);
  }

 private:
  std::string_view snapshot_;
};

struct directory {
  std::uint64_t at = 0, bytes = 0, count = 0;
};

tl::unexpected<error> wrong(std::string_view what) {
  return failure(errc::invalid, fmt::format("not an archive of torch.save: {}", what));
}

/// By the ZIP64 end record, which stands at a fixed distance from the end: these archives have no
/// comment and always that record.
result<directory> find_directory(const reader& snapshot) {
  constexpr auto tail = end64_bytes + locator_bytes + end_bytes;
  if (snapshot.size() < tail)
    return wrong(fmt::format("only {} bytes", snapshot.size()));
  const auto end64 = snapshot.size() - tail;
  if (!snapshot.signed_as(snapshot.size() - end_bytes, end_sign, end_bytes))
    return wrong("its end record is missing; the file was cut off or is of another kind");
  const auto locator = end64 + end64_bytes;
  if (!snapshot.signed_as(locator, locator_sign, locator_bytes) ||
      snapshot.number<std::uint64_t>(locator + 8) != end64 ||
      !snapshot.signed_as(end64, end64_sign, end64_bytes))
    return wrong("its ZIP64 end record is missing");
  directory found{snapshot.number<std::uint64_t>(end64 + 48),
                  snapshot.number<std::uint64_t>(end64 + 40),
                  snapshot.number<std::uint64_t>(end64 + 32)};
  if (!snapshot.has(found.at, found.bytes) || found.at + found.bytes != end64 ||
      found.count > found.bytes / entry_bytes)
    return wrong("its directory does not lie where the end record says");
  return found;
}

struct extension {
  std::optional<std::uint64_t> bytes, stored_bytes, header;
};

/// The ZIP64 values that the fields of an entry leave to its extension, in the order of the format.
std::optional<extension> read_extension(const reader& snapshot, std::uint64_t at, std::uint64_t end,
                                        bool large, bool distant) {
  extension found;
  while (end - at >= 4) {
    const auto id = snapshot.number<std::uint16_t>(at);
    const std::uint64_t bytes = snapshot.number<std::uint16_t>(at + 2);
    at += 4;
    if (bytes > end - at)
      return std::nullopt;
    if (id == zip64_id) {
      if (bytes < (large ? 16u : 0u) + (distant ? 8u : 0u))
        return std::nullopt;
      if (large) {
        found.bytes = snapshot.number<std::uint64_t>(at);
        found.stored_bytes = snapshot.number<std::uint64_t>(at + 8);
      }
      if (distant)
        found.header = snapshot.number<std::uint64_t>(at + (large ? 16 : 0));
      return found;
    }
    at += bytes;
  }
  return large || distant ? std::nullopt : std::optional(found);
}

/// What the directory says of one record; `header` is where its own header is.
struct told {
  archive_entry entry;
  std::uint64_t header = 0, next = 0;
  bool is_described = false, is_extended = false;
};

result<told> read_entry(const reader& snapshot, std::uint64_t at, const directory& where) {
  const auto end = where.at + where.bytes;
  if (end - at < entry_bytes || !snapshot.signed_as(at, entry_sign, entry_bytes))
    return wrong(fmt::format("no entry at {} of its directory", at));
  const std::uint64_t name = snapshot.number<std::uint16_t>(at + 28),
                      extra = snapshot.number<std::uint16_t>(at + 30),
                      comment = snapshot.number<std::uint16_t>(at + 32);
  if (name + extra + comment > end - at - entry_bytes)
    return wrong(fmt::format("the entry at {} is longer than its directory", at));
  told found;
  found.entry.name = snapshot.text(at + entry_bytes, name);
  found.next = at + entry_bytes + name + extra + comment;
  if (snapshot.number<std::uint16_t>(at + 10) != stored)
    return wrong(fmt::format("{} is compressed", found.entry.name));
  found.is_described = (snapshot.number<std::uint16_t>(at + 8) & described) != 0;
  found.entry.crc = snapshot.number<std::uint32_t>(at + 16);
  found.entry.crc_at = at + 16;
  const auto size = snapshot.number<std::uint32_t>(at + 24),
             header = snapshot.number<std::uint32_t>(at + 42);
  const auto more =
      read_extension(snapshot, at + entry_bytes + name, at + entry_bytes + name + extra,
                     size == elsewhere_32, header == elsewhere_32);
  if (!more)
    return wrong(
        fmt::format("{} has no ZIP64 values where its entry needs them", found.entry.name));
  found.is_extended = more->bytes || more->header;
  found.entry.bytes = more->bytes.value_or(size);
  found.header = more->header.value_or(header);
  if (more->stored_bytes.value_or(snapshot.number<std::uint32_t>(at + 20)) != found.entry.bytes)
    return wrong(fmt::format("{} has two sizes", found.entry.name));
  return found;
}

/// Where the data is, by the record's own header, and the descriptor behind it.
result<archive_entry> locate(const reader& snapshot, const told& t, const directory& where) {
  auto found = t.entry;
  if (t.header > where.at || !snapshot.signed_as(t.header, header_sign, header_bytes))
    return wrong(fmt::format("{} has no header at {}", found.name, t.header));
  found.data = t.header + header_bytes + snapshot.number<std::uint16_t>(t.header + 26) +
               snapshot.number<std::uint16_t>(t.header + 28);
  if (found.data > where.at || found.bytes > where.at - found.data)
    return wrong(fmt::format("{} reaches into the directory", found.name));
  if (t.is_described) {
    const auto behind = found.data + found.bytes;
    const auto bytes = t.is_extended ? long_descriptor_bytes : descriptor_bytes;
    if (where.at - behind < bytes || !snapshot.signed_as(behind, descriptor_sign, bytes))
      return wrong(fmt::format("{} has no descriptor behind it", found.name));
    found.crc_behind_data_at = behind + 4;
  }
  return found;
}

std::uint32_t crc_of(std::string_view bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

} // namespace

result<std::vector<archive_entry>> read_archive(std::string_view bytes) {
  const reader snapshot(bytes);
  const auto where = find_directory(snapshot);
  if (!where)
    return tl::make_unexpected(where.error());
  std::vector<archive_entry> entries;
  entries.reserve(where->count);
  auto at = where->at;
  for (std::uint64_t i = 0; i < where->count; ++i) {
    const auto entry = read_entry(snapshot, at, *where);
    if (!entry)
      return tl::make_unexpected(entry.error());
    auto found = locate(snapshot, *entry, *where);
    if (!found)
      return tl::make_unexpected(found.error());
    entries.push_back(*found);
    at = entry->next;
  }
  if (at != where->at + where->bytes)
    return wrong("its directory has more than its end record counts");
  return entries;
}

result<void> seal(char* snapshot, std::size_t bytes) {
  const auto entries = read_archive({snapshot, bytes});
  if (!entries)
    return tl::make_unexpected(entries.error());
  for (const auto& e : *entries) {
    const auto crc = crc_of({snapshot + e.data, e.bytes});
    put(snapshot + e.crc_at, crc);
    if (e.crc_behind_data_at != 0)
      put(snapshot + e.crc_behind_data_at, crc);
  }
  return {};
}

result<void> verify(std::string_view snapshot) {
  const auto entries = read_archive(snapshot);
  if (!entries)
    return tl::make_unexpected(entries.error());
  for (const auto& e : *entries)
    if (crc_of(snapshot.substr(e.data, e.bytes)) != e.crc)
      return failure(
          errc::invalid,
          fmt::format("{} is damaged: its CRC-32 is not the one that was written", e.name));
  return {};
}

} // namespace troupe::ckpt
