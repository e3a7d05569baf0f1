#include "ckpt/catalog/confirmed_saves.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::ckpt {

namespace {

constexpr std::string_view confirmations = ".troupe/confirmed";

std::string record_of(const save_id& which) {
  return fmt::format("{}/{}-{}", confirmations, which.made_by.value, which.number);
}

/// None for files of others.
std::optional<save_id> save_in(const std::string& record) {
  if (record.size() <= confirmations.size())
    return std::nullopt; // a file of the directory's own name
  save_id found;
  const char* const end = record.data() + record.size();
  const auto made_by =
      std::from_chars(record.data() + confirmations.size() + 1, end, found.made_by.value);
  if (made_by.ptr != end)
    std::from_chars(made_by.ptr + 1, end, found.number);
  return record_of(found) == record ? std::optional(found) : std::nullopt;
}

} // namespace

result<std::set<save_id>> confirmed_saves(ports::storage& storage) {
  const auto listed = storage.list(std::string(confirmations));
  if (!listed)
    return tl::make_unexpected(listed.error());
  std::set<save_id> all;
  for (const auto& file : *listed)
    if (const auto found = save_in(file.name))
      all.insert(*found);
  return all;
}

result<void> confirm_save(ports::storage& storage, const save_id& which) {
  return storage.replace(record_of(which), "");
}

result<void> forget_save(ports::storage& storage, const save_id& which) {
  return storage.remove(record_of(which));
}

} // namespace troupe::ckpt
