#include "ckpt/snapshot/archive.hpp"

#include "ckpt/snapshot/bytes.hpp"
#include "ckpt/snapshot/zip.hpp"
#include "runtime/base/invariant.hpp"

#include <algorithm>

namespace troupe::ckpt {

using namespace zip;

bool archive_layout::place::large() const {
  return bytes >= elsewhere_32;
}
bool archive_layout::place::distant() const {
  return header >= elsewhere_32;
}

namespace {

/// What ZIP64 adds to a header or entry: an id and a size of two bytes each, then the values.
std::uint64_t extension_bytes(bool large, bool distant) {
  return large || distant ? 4u + (large ? 16u : 0u) + (distant ? 8u : 0u) : 0u;
}

char* put_extension(char* to, bool large, bool distant, std::uint64_t bytes, std::uint64_t header) {
  if (!large && !distant)
    return to;
  to = put(to, zip64_id);
  to = put(to, static_cast<std::uint16_t>(extension_bytes(large, distant) - 4));
  if (large)
    to = put(put(to, bytes), bytes);
  if (distant)
    to = put(to, header);
  return to;
}

std::uint32_t or_elsewhere(bool elsewhere, std::uint64_t value) {
  return elsewhere ? elsewhere_32 : static_cast<std::uint32_t>(value);
}

} // namespace

archive_layout::archive_layout(std::string_view name, const std::vector<record>& records) {
  places_.reserve(records.size());
  std::uint64_t at = 0;
  for (const auto& r : records) {
    place p{std::string(name) + '/' + r.name, r.bytes, at, 0};
    invariant(p.name.size() <= 60'000, "a record's name is too long for a zip archive");
    const auto least =
        at + header_bytes + p.name.size() + padding_head + extension_bytes(p.large(), p.distant());
    p.data = (least + alignment - 1) / alignment * alignment;
    at = p.data + p.bytes;
    if (p.bytes != 0)
      at += p.extended() ? long_descriptor_bytes : descriptor_bytes;
    end_ += entry_bytes + p.name.size() + extension_bytes(p.large(), p.distant());
    places_.push_back(std::move(p));
  }
  directory_ = at;
  end_ += at;
  bytes_ = end_ + end64_bytes + locator_bytes + end_bytes;
}

void archive_layout::write_frame(char* snapshot) const {
  auto* entry = snapshot + directory_;
  for (const auto& p : places_) {
    write_header(snapshot + p.header, p);
    if (p.bytes != 0) {
      auto* to = put(snapshot + p.data + p.bytes, descriptor_sign);
      to = put(to, std::uint32_t{0});
      if (p.extended())
        put(put(to, p.bytes), p.bytes);
      else
        put(put(to, static_cast<std::uint32_t>(p.bytes)), static_cast<std::uint32_t>(p.bytes));
    }
    entry = write_entry(entry, p);
  }
  write_end(entry);
}

void archive_layout::write_header(char* to, const place& p) const {
  auto* const data = to + (p.data - p.header);
  to = put(to, header_sign);
  to = put(to, p.extended() ? version_zip64 : version_plain);
  to = put(to, p.bytes != 0 ? flags_described : flags_utf8);
  to = put(put(to, stored), std::uint16_t{0});        // time
  to = put(put(to, new_year_1980), std::uint32_t{0}); // date, CRC-32
  to = put(put(to, or_elsewhere(p.large(), 0)), or_elsewhere(p.large(), 0));
  const auto extension = extension_bytes(p.large(), p.distant());
  const auto padding =
      static_cast<std::uint64_t>(data - to) - 4 - p.name.size() - extension - padding_head;
  to = put(to, static_cast<std::uint16_t>(p.name.size()));
  to = put(to, static_cast<std::uint16_t>(extension + padding_head + padding));
  to = put(to, std::string_view(p.name));
  to = put_extension(to, p.large(), p.distant(), p.bytes, p.header);
  to = put(put(to, padding_id), static_cast<std::uint16_t>(padding));
  std::fill(to, data, 'Z');
}

char* archive_layout::write_entry(char* to, const place& p) const {
  const auto version = p.extended() ? version_zip64 : version_plain;
  to = put(put(put(to, entry_sign), version), version);
  to = put(to, p.bytes != 0 ? flags_described : flags_utf8);
  to = put(put(to, stored), std::uint16_t{0});
  to = put(put(to, new_year_1980), std::uint32_t{0});
  to = put(put(to, or_elsewhere(p.large(), p.bytes)), or_elsewhere(p.large(), p.bytes));
  to = put(to, static_cast<std::uint16_t>(p.name.size()));
  to = put(to, static_cast<std::uint16_t>(extension_bytes(p.large(), p.distant())));
  to = put(put(put(to, std::uint16_t{0}), std::uint16_t{0}),
           std::uint16_t{0});                                               // comment, disk, text
  to = put(put(to, std::uint32_t{0}), or_elsewhere(p.distant(), p.header)); // attributes
  to = put(to, std::string_view(p.name));
  return put_extension(to, p.large(), p.distant(), p.bytes, p.header);
}

void archive_layout::write_end(char* to) const {
  const auto count = static_cast<std::uint64_t>(places_.size());
  const auto size = end_ - directory_;
  to = put(put(to, end64_sign), end64_bytes - 12);
  to = put(put(to, version_zip64), version_zip64);
  to = put(put(to, std::uint32_t{0}), std::uint32_t{0}); // disks
  to = put(put(put(put(to, count), count), size), directory_);
  to = put(put(put(put(to, locator_sign), std::uint32_t{0}), end_), std::uint32_t{1});
  const auto count_16 = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, elsewhere_16));
  to = put(put(put(to, end_sign), std::uint16_t{0}), std::uint16_t{0});
  to = put(put(to, count_16), count_16);
  to = put(to, or_elsewhere(size >= elsewhere_32, size));
  to = put(to, or_elsewhere(directory_ >= elsewhere_32, directory_));
  put(to, std::uint16_t{0}); // comment
}

} // namespace troupe::ckpt
