#include "ckpt/snapshot/snapshot_layout.hpp"

#include "ckpt/snapshot/archive.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace troupe::ckpt {

namespace {

std::uint64_t aligned_for_archive(std::uint64_t at) {
  constexpr auto to = archive_layout::alignment;
  return (at + to - 1) / to * to;
}

void clear(char* snapshot, std::uint64_t begin, std::uint64_t end) {
  std::fill(snapshot + begin, snapshot + end, '\0');
}

result<void> check_counts(const snapshot_layout::contents& c) {
  const auto parts =
      std::accumulate(c.files.begin(), c.files.end(), std::size_t{0},
                      [](std::size_t sum, const file_to_lay_out& f) { return sum + f.parts; });
  const auto storages =
      std::accumulate(c.parts.begin(), c.parts.end(), std::size_t{0},
                      [](std::size_t sum, const file_part& p) { return sum + p.storages; });
  const auto one_archive = c.files.empty() && c.parts.size() == 1 && c.parts[0].is_archive;
  if (storages != c.storages.size() || (!one_archive && parts != c.parts.size()))
    return failure(errc::invalid, "the files of a snapshot do not have the parts that are given");
  return {};
}

} // namespace

bool snapshot_layout::contents::operator==(const contents& other) const {
  return files == other.files && parts == other.parts && storages == other.storages &&
         last_file_room == other.last_file_room && last_file_name == other.last_file_name;
}

result<snapshot_layout> snapshot_layout::of(const contents& c) {
  if (const auto sound = check_counts(c); !sound)
    return tl::make_unexpected(sound.error());
  snapshot_layout made;
  made.parts_.reserve(c.parts.size());
  made.storages_.reserve(c.storages.size());
  if (c.files.empty() && !c.parts.empty()) {
    made.bytes_ = made.add_part(c, c.parts[0], 0, 0);
    return made;
  }
  auto& list = made.list_.emplace();
  auto part = c.parts.begin();
  std::uint64_t at = 0;
  for (const auto& f : c.files) {
    const auto begin = aligned_for_file(at);
    at = begin;
    for (std::size_t i = 0; i < f.parts; ++i, ++part)
      at = made.add_part(c, *part, begin, at);
    list.files.push_back({f.name, begin, at - begin, 0});
  }
  list.begin = aligned_for_file(at);
  made.open_ = c.last_file_room != 0;
  made.bytes_ = list.snapshot_bytes();
  if (made.open_) {
    auto longer = list;
    longer.begin = aligned_for_file(list.begin + c.last_file_room);
    longer.files.push_back({std::string(c.last_file_name, 'x'), 0, 0, 0});
    made.bytes_ = longer.snapshot_bytes();
  }
  if (const auto sound = check(list); !sound)
    return tl::make_unexpected(sound.error());
  return made;
}

std::uint64_t snapshot_layout::add_part(const contents& c, const file_part& part,
                                        std::uint64_t file_begin, std::uint64_t at) {
  place p;
  const auto first = c.storages.begin() + static_cast<std::ptrdiff_t>(storages_.size());
  const std::vector<std::uint64_t> sizes(first, first + static_cast<std::ptrdiff_t>(part.storages));
  if (part.is_archive) {
    p.begin = aligned_for_archive(at);
    p.archive.emplace(part.head, sizes);
    p.head = p.begin + p.archive->pickle_at();
    p.bytes = p.archive->layout().bytes();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      storages_.push_back(p.begin + p.archive->storage_at(i));
    if (list_)
      list_->archives.push_back({p.begin, p.bytes});
  } else {
    p.begin = p.head = at;
    p.bytes = part.head;
    for (const auto bytes : sizes) {
      storages_.push_back(p.begin + p.bytes);
      p.bytes += bytes;
    }
  }
  p.in_file = p.begin - file_begin;
  const auto end = p.begin + p.bytes;
  parts_.push_back(std::move(p));
  return end;
}

void snapshot_layout::write_frame(char* snapshot) const {
  std::uint64_t written = 0; // a part behind another, up to here
  for (const auto& p : parts_) {
    clear(snapshot, written, p.begin);
    if (p.archive)
      p.archive->write_frame(snapshot + p.begin);
    written = p.begin + p.bytes;
  }
  if (!list_)
    return;
  clear(snapshot, written, list_->begin);
  if (!open_)
    write_list(snapshot + list_->begin, *list_);
}

result<const snapshot_layout*> kept_layout::of(const snapshot_layout::contents& c) {
  if (layout_ && contents_ == c)
    return &*layout_;
  layout_.reset();
  auto made = snapshot_layout::of(c);
  if (!made)
    return tl::make_unexpected(made.error());
  contents_ = c;
  layout_ = std::move(*made);
  return &*layout_;
}

result<std::uint64_t> add_last_file(char* snapshot, std::uint64_t room, file_list list,
                                    const std::string& name, std::string_view content) {
  const auto begin = list.begin;
  const auto end = begin + content.size();
  list.files.push_back({name, begin, content.size(), 0});
  list.begin = aligned_for_file(end);
  if (const auto sound = check(list); !sound)
    return tl::make_unexpected(sound.error());
  if (list.snapshot_bytes() > room)
    return failure(errc::overloaded, fmt::format("'{}' has {} bytes, for which there is no room "
                                                 "behind the other files",
                                                 name, content.size()));
  std::memcpy(snapshot + begin, content.data(), content.size());
  clear(snapshot, end, list.begin);
  write_list(snapshot + list.begin, list);
  return list.snapshot_bytes();
}

result<void> seal_snapshot(char* snapshot, std::size_t bytes) {
  if (!has_file_list({snapshot, bytes}))
    return seal(snapshot, bytes);
  auto list = list_in({snapshot, bytes});
  if (!list)
    return tl::make_unexpected(list.error());
  for (const auto& a : list->archives)
    if (auto sealed = seal(snapshot + a.begin, a.bytes); !sealed)
      return sealed;
  for (auto& f : list->files)
    f.crc32 = libdeflate_crc32(0, snapshot + f.begin, f.bytes);
  write_list(snapshot + list->begin, *list);
  return {};
}

} // namespace troupe::ckpt
