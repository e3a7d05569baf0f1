#include "trace/core/communicators.hpp"

namespace troupe::trace {

namespace {

const char mark = 0;
/// A row that was used, so that a search goes on beyond it.
const void* const gone = &mark;

std::size_t first_place(const void* handle) {
  auto bits = reinterpret_cast<std::uintptr_t>(handle);
  bits ^= bits >> 32;
  return ((bits * 0x9e3779b97f4a7c15u) >> 32) % limits::communicators_max;
}

constexpr std::uint64_t fnv_offset = 0xcbf29ce484222325u, fnv_prime = 0x100000001b3u;

std::uint64_t never_zero(std::uint64_t name) {
  return name == 0 ? 1 : name;
}

} // namespace

std::size_t communicators::find(const void* handle) const {
  auto at = first_place(handle);
  for (std::size_t n = 0; n < rows_.size(); ++n, at = (at + 1) % rows_.size()) {
    const auto* seen = rows_[at].handle.load(std::memory_order_acquire);
    if (seen == handle)
      return at;
    if (!seen)
      return none;
  }
  return none;
}

std::size_t communicators::add(const void* handle, std::uint64_t name, std::uint32_t members,
                               std::uint32_t rank) {
  auto at = first_place(handle);
  for (std::size_t n = 0; n < rows_.size(); ++n, at = (at + 1) % rows_.size()) {
    const auto* seen = rows_[at].handle.load(std::memory_order_relaxed);
    if (seen && seen != gone)
      continue;
    row& r = rows_[at];
    r.name = name;
    r.members = members;
    r.rank = rank;
    r.sequence = 0;
    r.splits = 0;
    r.page_row = 0;
    r.handle.store(handle, std::memory_order_release);
    return at;
  }
  return none;
}

void communicators::remove(const void* handle) {
  const auto at = find(handle);
  if (at != none)
    rows_[at].handle.store(gone, std::memory_order_release);
}

std::uint64_t name_of_id(const char* id, std::size_t bytes) {
  auto hash = fnv_offset;
  for (std::size_t at = 0; at < bytes; ++at)
    hash = (hash ^ static_cast<unsigned char>(id[at])) * fnv_prime;
  return never_zero(hash);
}

std::uint64_t name_of_part(std::uint64_t parent, std::uint64_t split, std::int64_t color) {
  const std::uint64_t words[] = {parent, split, static_cast<std::uint64_t>(color)};
  return name_of_id(reinterpret_cast<const char*>(words), sizeof words);
}

} // namespace troupe::trace
