#include "ckpt/catalog/newest_generation.hpp"

#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace troupe::ckpt {

namespace {

constexpr std::string_view records = ".troupe/generations";

std::string record_of(generation which) {
  return fmt::format("{}/{}", records, which.value);
}

/// Those on record; other people's files are none.
result<std::vector<generation>> on_record(ports::storage& storage) {
  const auto listed = storage.list(std::string(records));
  if (!listed)
    return tl::make_unexpected(listed.error());
  std::vector<generation> all;
  for (const auto& file : *listed) {
    generation found;
    const char* end = file.name.data() + file.name.size();
    const char* begin = std::min(file.name.data() + records.size() + 1, end);
    std::from_chars(begin, end, found.value);
    if (record_of(found) == file.name)
      all.push_back(found);
  }
  return all;
}

result<void> check_against(const std::vector<generation>& all, generation which) {
  const auto newest = std::max_element(all.begin(), all.end());
  if (newest == all.end() || !(which < *newest))
    return {};
  return failure(errc::refused,
                 fmt::format("{} {}, since the newer {} has; if that is none of this job, two jobs "
                             "have one directory: give each its own",
                             in_full(which), refused_for_newer, in_full(*newest)));
}

} // namespace

result<generation> newest_on_record(ports::storage& storage) {
  return on_record(storage).map([](const std::vector<generation>& all) {
    const auto newest = std::max_element(all.begin(), all.end());
    return newest == all.end() ? generation{} : *newest;
  });
}

result<void> check_newest(ports::storage& storage, generation which) {
  if (which == generation{})
    return {};
  const auto all = on_record(storage);
  return all ? check_against(*all, which) : tl::make_unexpected(all.error());
}

/// Looks after it has written: of two that do this at once at least the older one sees the other.
result<void> become_newest(ports::storage& storage, generation which) {
  if (which == generation{})
    return {};
  auto all = on_record(storage);
  if (!all)
    return tl::make_unexpected(all.error());
  if (std::find(all->begin(), all->end(), which) == all->end()) {
    if (auto written = storage.replace(record_of(which), ""); !written)
      return written;
    all = on_record(storage);
    if (!all)
      return tl::make_unexpected(all.error());
  }
  if (auto fenced = check_against(*all, which); !fenced)
    return fenced;
  // Only the highest counts.
  for (const auto older : *all)
    if (older < which)
      if (auto removed = storage.remove(record_of(older)); !removed)
        return removed;
  return {};
}

} // namespace troupe::ckpt
