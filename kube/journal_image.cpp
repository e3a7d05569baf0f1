#include "kube/journal_image.hpp"

#include "kube/objects.hpp"
#include "runtime/base/base64.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <charconv>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr std::uint64_t version = 1;
constexpr std::size_t word = sizeof(std::uint32_t);
constexpr std::size_t frame_head = 2 * word;

std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes; ++at)
    out += static_cast<char>(number >> (8 * at) & 0xff);
  return out;
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t byte = word; byte-- > 0;)
    number = number << 8 | static_cast<std::uint8_t>(bytes[at + byte]);
  return number;
}

std::uint32_t checksum_of(std::uint32_t before, std::uint64_t number, std::string_view record) {
  const auto head = little_endian(before, word) + little_endian(number, sizeof(number));
  const auto crc = libdeflate_crc32(0, head.data(), head.size());
  return libdeflate_crc32(crc, record.data(), record.size());
}

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

bool is_empty(const json::value& config_map, const char* name) {
  const auto* there = member(config_map, {name});
  const auto* object = there != nullptr ? there->if_object() : nullptr;
  return object == nullptr || object->empty();
}

tl::unexpected<error> damaged(std::uint64_t number, const char* why) {
  return failure(errc::invalid, fmt::format("record {} {}", number, why));
}

/// Calls `take` with each record in turn; answers the last one's checksum.
template<class Take>
result<std::uint32_t> for_each_record(const journal_image& image, Take&& take) {
  const std::string_view all = image.records;
  std::size_t at = 0;
  std::uint32_t before = 0;
  auto number = image.first;
  for (; at < all.size(); ++number) {
    if (all.size() - at < frame_head || all.size() - at - frame_head < word_at(all, at))
      return damaged(number, "is damaged: it ends too soon");
    const auto record = all.substr(at + frame_head, word_at(all, at));
    before = checksum_of(before, number, record);
    if (before != word_at(all, at + word))
      return damaged(number, "is damaged: its checksum does not match");
    take(record);
    at += frame_head + record.size();
  }
  if (number <= image.last)
    return damaged(number, "is missing");
  if (number != image.last + 1)
    return damaged(image.last + 1, "is damaged: it is not among those that are counted");
  return before;
}

} // namespace

void journal_image::append(std::string_view record) {
  checksum = checksum_of(checksum, ++last, record);
  records += little_endian(record.size(), word) + little_endian(checksum, word);
  records += record;
}

void journal_image::replace(const std::vector<std::string>& kept) {
  first = last + 1 - kept.size();
  last = first - 1;
  checksum = 0;
  records.clear();
  for (const auto& record : kept)
    append(record);
}

std::size_t framed_size(std::size_t record) {
  return frame_head + record;
}

result<std::vector<std::string>> records_of(const journal_image& image) {
  std::vector<std::string> all;
  const auto read = for_each_record(image, [&all](std::string_view r) { all.emplace_back(r); });
  if (!read)
    return tl::make_unexpected(read.error());
  return all;
}

void put(json::object& config_map, const journal_image& image) {
  auto& data = object_at(config_map, "data");
  data["version"] = std::to_string(version);
  data["job"] = image.job;
  data.erase("uid");
  if (!image.uid.empty())
    data["uid"] = image.uid;
  data.erase("run");
  if (image.run)
    data["run"] = std::to_string(*image.run);
  data["epoch"] = std::to_string(image.term);
  data["owner"] = image.owner;
  data["first"] = std::to_string(image.first);
  data["last"] = std::to_string(image.last);
  object_at(config_map, "binaryData")["records"] = base64_of(image.records);
}

result<std::optional<journal_image>> image_in(const json::value& config_map) {
  if (is_empty(config_map, "data") && is_empty(config_map, "binaryData"))
    return std::nullopt;
  const auto number = [&](const char* name) {
    return whole_number(text(config_map, {"data", name}));
  };
  const auto written_as = number("version");
  const auto term = number("epoch"), first = number("first"), last = number("last");
  if (!written_as)
    return failure(errc::invalid, "the ConfigMap is not a journal of Troupe");
  if (*written_as > version)
    return failure(errc::refused,
                   fmt::format("its version is {}, this program knows versions up to {}; finish "
                               "that job with the program that began it",
                               *written_as, version));
  const auto records = bytes_of_base64(text(config_map, {"binaryData", "records"}));
  if (!term || !first || !last || *first == 0 || *first > *last + 1 || !records)
    return failure(errc::invalid, "the journal in the ConfigMap is damaged: one of `epoch`, "
                                  "`first`, `last` and `records` cannot be read");
  journal_image image;
  image.job = text(config_map, {"data", "job"});
  image.uid = text(config_map, {"data", "uid"});
  image.run = number("run");
  image.term = *term;
  image.owner = text(config_map, {"data", "owner"});
  image.first = *first;
  image.last = *last;
  image.records = *records;
  const auto read = for_each_record(image, [](std::string_view) {});
  if (!read)
    return tl::make_unexpected(read.error());
  image.checksum = *read;
  return image;
}

} // namespace troupe::kube
