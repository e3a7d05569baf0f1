#include "topology/compressed_text.hpp"

#include "runtime/base/base64.hpp"
#include "topology/limits.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::topology {

namespace {

constexpr std::string_view blanks = " \t\r\n";
/// The shortest gzip file: header, an empty block and the trailer.
constexpr std::size_t gzip_min = 20;

struct compressor_free {
  void operator()(libdeflate_compressor* one) const { libdeflate_free_compressor(one); }
};
struct decompressor_free {
  void operator()(libdeflate_decompressor* one) const { libdeflate_free_decompressor(one); }
};

/// The length of what was compressed, as the file's last four bytes have it.
std::size_t length_in(std::string_view gzip) {
  std::size_t length = 0;
  for (std::size_t byte = 1; byte <= 4; ++byte)
    length = length << 8 | static_cast<std::uint8_t>(gzip[gzip.size() - byte]);
  return length;
}

tl::unexpected<error> too_long(std::size_t bytes) {
  return failure(errc::invalid,
                 fmt::format("it has {} bytes; {} are allowed", bytes, limits::topology_text_max));
}

} // namespace

result<std::string> compressed(std::string_view text) {
  if (text.size() > limits::topology_text_max)
    return too_long(text.size());
  constexpr int level = 6;
  const std::unique_ptr<libdeflate_compressor, compressor_free> gzip(
      libdeflate_alloc_compressor(level));
  if (!gzip)
    return failure(errc::unavailable, "out of memory");
  std::string bytes(libdeflate_gzip_compress_bound(gzip.get(), text.size()), '\0');
  bytes.resize(
      libdeflate_gzip_compress(gzip.get(), text.data(), text.size(), bytes.data(), bytes.size()));
  return base64_of(bytes);
}

result<std::string> plain(std::string_view text) {
  if (text.size() > limits::topology_text_max)
    return too_long(text.size());
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos)
    return failure(errc::invalid, "it is empty");
  if (text[begin] == '{')
    return std::string(text);
  const auto gzip = bytes_of_base64(text);
  if (!gzip)
    return failure(errc::invalid, "it is neither a JSON object nor base64");
  if (gzip->size() < gzip_min)
    return failure(errc::invalid, "what is in its base64 is too short for gzip");
  std::string unpacked;
  if (const auto length = length_in(*gzip); length <= limits::topology_text_max)
    unpacked.resize(length);
  else
    return too_long(length);
  const std::unique_ptr<libdeflate_decompressor, decompressor_free> reader(
      libdeflate_alloc_decompressor());
  if (!reader)
    return failure(errc::unavailable, "out of memory");
  std::size_t read = 0, written = 0;
  const auto outcome = libdeflate_gzip_decompress_ex(
      reader.get(), gzip->data(), gzip->size(), unpacked.data(), unpacked.size(), &read, &written);
  if (outcome != LIBDEFLATE_SUCCESS || read != gzip->size() || written != unpacked.size())
    return failure(errc::invalid, "what is in its base64 is damaged, or no gzip");
  return unpacked;
}

result<json_value> plain_json(std::string_view text, prose texts) {
  const auto unpacked = plain(text);
  if (!unpacked)
    return tl::make_unexpected(unpacked.error());
  return located_json(*unpacked, texts);
}

} // namespace troupe::topology
