#include "ckpt/catalog/foreign_steps.hpp"

#include "ckpt/catalog/step_names.hpp"
#include "ckpt/catalog/trackers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace troupe::ckpt {

namespace {

/// A tracker is a number or a directory's name.
constexpr std::size_t tracker_bytes_max = 256;

std::string trimmed(std::string text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(std::find_if_not(text.rbegin(), text.rend(), space).base(), text.end());
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  return text;
}

/// The number that a text ends with: 100 of "100" and of "global_step100".
std::optional<std::uint64_t> number_at_end(const std::string& text) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto begin = std::find_if_not(text.rbegin(), text.rend(), digit).base();
  std::uint64_t number = 0;
  const auto* const from = text.data() + (begin - text.begin());
  const auto read = std::from_chars(from, text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Where the known tools put a step that their tracker calls so.
std::vector<std::string> directories_of(const std::string& named, std::uint64_t step) {
  std::vector<std::string> all{named};
  const auto add = [&all](std::string one) {
    if (std::find(all.begin(), all.end(), one) == all.end())
      all.push_back(std::move(one));
  };
  add(std::to_string(step));
  add(fmt::format("iter_{:07}", step));
  add(fmt::format("global_step{}", step));
  add(fmt::format("checkpoint-{}", step));
  return all;
}

/// Known by a marker of its number, or by its manifest.
result<bool> is_ours(ports::storage& storage, std::uint64_t step, const std::string& directory) {
  for (const auto& name : {marker_of(step), manifest_of_step(step, directory)}) {
    const auto there = storage.list(name);
    if (!there)
      return tl::make_unexpected(there.error());
    if (!there->empty())
      return true;
  }
  return false;
}

/// What a tracker says.
struct named_step {
  std::string text;
  std::uint64_t step = 0;
};

/// A tracker that is larger than any, or cannot be read, is not for us to judge.
result<std::optional<named_step>> named_by(ports::storage& storage, const std::string& tracker) {
  const auto text = storage.get_small(tracker, tracker_bytes_max);
  if (!text && text.error().code == errc::unavailable)
    return tl::make_unexpected(text.error());
  auto named = text ? trimmed(*text) : std::string();
  const auto step = number_at_end(named);
  if (!step || !check_directory(named))
    return std::optional<named_step>();
  return std::optional(named_step{std::move(named), *step});
}

/// Where it is; empty if it is nowhere.
result<std::string> directory_of(ports::storage& storage, const named_step& named) {
  for (const auto& directory : directories_of(named.text, named.step)) {
    const auto files = storage.list(directory);
    if (!files && files.error().code == errc::unavailable)
      return tl::make_unexpected(files.error());
    // One that may not be listed, or that has more files than are listed, is there.
    if (!files || !files->empty())
      return directory;
  }
  return std::string();
}

} // namespace

result<std::optional<foreign_step>> foreign_step_of(ports::storage& storage,
                                                    const std::string& tracker) {
  const auto named = named_by(storage, tracker);
  if (!named)
    return tl::make_unexpected(named.error());
  if (!*named)
    return std::optional<foreign_step>{};
  auto directory = directory_of(storage, **named);
  if (!directory)
    return tl::make_unexpected(directory.error());
  if (directory->empty())
    return std::optional<foreign_step>{};
  const auto ours = is_ours(storage, (*named)->step, *directory);
  if (!ours)
    return tl::make_unexpected(ours.error());
  return *ours ? std::optional<foreign_step>{}
               : std::optional(foreign_step{tracker, (*named)->step, std::move(*directory)});
}

result<std::vector<foreign_step>> tracked_steps(ports::storage& storage) {
  std::vector<foreign_step> all;
  for (const auto& tracker : known_trackers()) {
    const auto named = named_by(storage, tracker);
    if (!named)
      return tl::make_unexpected(named.error());
    if (!*named)
      continue;
    auto directory = directory_of(storage, **named);
    if (!directory)
      return tl::make_unexpected(directory.error());
    all.push_back({tracker, (*named)->step, std::move(*directory)});
  }
  return all;
}

result<std::vector<foreign_step>> foreign_steps(ports::storage& storage) {
  std::vector<foreign_step> all;
  for (const auto& tracker : known_trackers()) {
    auto found = foreign_step_of(storage, tracker);
    if (!found)
      return tl::make_unexpected(std::move(found.error()));
    if (*found)
      all.push_back(std::move(**found));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.step > b.step; });
  return all;
}

} // namespace troupe::ckpt
