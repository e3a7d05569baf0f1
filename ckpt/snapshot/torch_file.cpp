#include "ckpt/snapshot/torch_file.hpp"

#include "ckpt/snapshot/bytes.hpp"

#include <array>
#include <string>

namespace troupe::ckpt {

namespace {

struct fixed {
  std::string_view name, data;
};

/// Behind the pickle. Version 1 of the format: storages stand in the order of their numbers.
constexpr std::array<fixed, 3> heads{
    {{".format_version", "1"}, {".storage_alignment", "64"}, {"byteorder", "little"}}};
constexpr fixed version{"version", "3\n"};
static_assert(archive_layout::alignment == 64);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the record `byteorder` says little"
#endif

std::vector<record> records(std::uint64_t pickle, const std::vector<std::uint64_t>& storages) {
  std::vector<record> all;
  all.reserve(storages.size() + heads.size() + 2);
  all.push_back({"data.pkl", pickle});
  for (const auto& f : heads)
    all.push_back({std::string(f.name), f.data.size()});
  for (std::size_t i = 0; i < storages.size(); ++i)
    all.push_back({"data/" + std::to_string(i), storages[i]});
  all.push_back({std::string(version.name), version.data.size()});
  return all;
}

} // namespace

torch_file::torch_file(std::uint64_t pickle, const std::vector<std::uint64_t>& storages)
    : layout_("archive", records(pickle, storages)), storages_(storages.size()) {}

std::uint64_t torch_file::storage_at(std::size_t index) const {
  return layout_.data_of(1 + heads.size() + index);
}

void torch_file::write_frame(char* snapshot) const {
  layout_.write_frame(snapshot);
  for (std::size_t i = 0; i < heads.size(); ++i)
    put(snapshot + layout_.data_of(1 + i), heads[i].data);
  put(snapshot + layout_.data_of(1 + heads.size() + storages_), version.data);
}

} // namespace troupe::ckpt
