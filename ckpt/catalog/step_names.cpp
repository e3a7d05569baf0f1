#include "ckpt/catalog/step_names.hpp"

#include "ckpt/catalog/manifest.hpp"
#include "ckpt/catalog/trackers.hpp"
#include "runtime/ports/storage.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <charconv>

namespace troupe::ckpt {

namespace {

constexpr std::string_view own_names = ".troupe";
constexpr std::string_view manifests_in_place = "troupe-manifest-", manifest_end = ".json";

} // namespace

std::string marker_of(std::uint64_t step) {
  return fmt::format("{}/{}", markers, step);
}

std::optional<std::uint64_t> step_of_marker(const std::string& name) {
  if (name.size() <= markers.size())
    return std::nullopt; // a file of the directory's own name
  std::uint64_t step = 0;
  const char* begin = name.data() + markers.size() + 1;
  const char* end = name.data() + name.size();
  const auto [last, wrong] = std::from_chars(begin, end, step);
  if (wrong != std::errc() || last != end || marker_of(step) != name)
    return std::nullopt;
  return step;
}

std::string to_text(const step_marker& marker) {
  const auto text = fmt::format("{}\n{} {} ", marker.directory, marker.begun_by.made_by.value,
                                marker.begun_by.number);
  return fmt::format("{}{:08x}\n", text, libdeflate_crc32(0, text.data(), text.size()));
}

result<step_marker> marker_in(const std::string& text) {
  const auto line = text.size() < 2 ? text.npos : text.rfind('\n', text.size() - 2);
  if (line == text.npos && text.find('\n') == text.npos)
    return step_marker{text, {}};
  step_marker found{text.substr(0, line), {}};
  if (line != text.npos) {
    const char* const end = text.data() + text.size();
    const auto made_by = std::from_chars(text.data() + line + 1, end, found.begun_by.made_by.value);
    if (made_by.ptr != end)
      std::from_chars(made_by.ptr + 1, end, found.begun_by.number);
  }
  // The same text again: the checksum and every other byte is as it was written.
  if (to_text(found) != text)
    return failure(errc::invalid, "it is damaged: its checksum does not match");
  return found;
}

result<void> check_directory(const std::string& directory) {
  if (directory == in_place)
    return {};
  if (auto valid = ports::valid_name(directory); !valid)
    return valid;
  if (directory.substr(0, directory.find('/')) == own_names)
    return failure(errc::invalid, fmt::format("'{}' cannot be a step's directory", directory));
  return {};
}

result<void> check_file_in_place(const std::string& file) {
  if (auto valid = ports::valid_name(file); !valid)
    return valid;
  if (file.find('/') != std::string::npos)
    return failure(errc::invalid,
                   fmt::format("'{}' does not lie directly in the place of its step", file));
  if (file.compare(0, own_names.size(), own_names) == 0 || is_tracker(file) ||
      file == manifest_name || step_of_manifest(file))
    return failure(errc::invalid, fmt::format("'{}' cannot be the name of a step's file", file));
  return {};
}

std::string folder_of(std::uint64_t step, const std::string& directory) {
  return directory == in_place ? fmt::format(".troupe/in_place/{}", step) : directory;
}

std::string manifest_of_step(std::uint64_t step, const std::string& directory) {
  return directory == in_place ? fmt::format("{}{}{}", manifests_in_place, step, manifest_end)
                               : fmt::format("{}/{}", directory, manifest_name);
}

std::optional<std::uint64_t> step_of_manifest(const std::string& name) {
  if (name.compare(0, manifests_in_place.size(), manifests_in_place) != 0)
    return std::nullopt;
  std::uint64_t step = 0;
  const char* const begin = name.data() + manifests_in_place.size();
  std::from_chars(begin, name.data() + name.size(), step);
  return manifest_of_step(step, std::string(in_place)) == name ? std::optional(step) : std::nullopt;
}

std::string file_in(const std::string& directory, const std::string& file) {
  return directory == in_place ? file : fmt::format("{}/{}", directory, file);
}

std::string claim_of(std::uint64_t step, const std::string& file) {
  return fmt::format("{}/{}", folder_of(step, std::string(in_place)), file);
}

bool overlap(const std::string& a, const std::string& b) {
  const auto& shorter = a.size() < b.size() ? a : b;
  const auto& longer = a.size() < b.size() ? b : a;
  return longer.compare(0, shorter.size(), shorter) == 0 &&
         (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

} // namespace troupe::ckpt
