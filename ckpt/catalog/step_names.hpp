#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the files of a step are called at a place of storage.
namespace troupe::ckpt {

/// The directory of a step whose files lie in the place itself, beside those of other steps and of
/// other people.
inline constexpr std::string_view in_place = ".";

/// One file for each step that was begun and not removed.
inline constexpr std::string_view markers = ".troupe/steps";
std::string marker_of(std::uint64_t step);

/// What a marker says. As text: the directory; below it the generation and the number of the save
/// and the checksum of all before. Versions that did not number saves wrote the directory alone.
struct step_marker {
  std::string directory; ///< of the step; what is there is the step's
  /// The save that began it last. Its files are those of this save, or are yet to be written.
  save_id begun_by;
};
std::string to_text(const step_marker& marker);
/// `invalid` for a text that is damaged: with another save in it the step would pass for one that
/// is not complete, or for one that is.
result<step_marker> marker_in(const std::string& text);
/// The step whose marker has this name; none for names of others, also not for "007".
std::optional<std::uint64_t> step_of_marker(const std::string& name);

/// What is wrong with a step's directory, or nothing.
result<void> check_directory(const std::string& directory);
/// The same for a file of a step that is in place. Names that begin with `.troupe`, those of
/// manifests and those of trackers are ours.
result<void> check_file_in_place(const std::string& file);

/// What belongs to a step alone and goes with it as a whole: its directory, or `.troupe/in_place/`
/// and its number.
std::string folder_of(std::uint64_t step, const std::string& directory);
/// In its directory; of one that is in place beside its files, as `troupe-manifest-100.json`.
std::string manifest_of_step(std::uint64_t step, const std::string& directory);
/// The step in place whose manifest has this name.
std::optional<std::uint64_t> step_of_manifest(const std::string& name);
/// The name of a shard's file.
std::string file_in(const std::string& directory, const std::string& file);
/// An empty file that says that a file in the place is this step's.
std::string claim_of(std::uint64_t step, const std::string& file);

/// Whether one is the other or below it, so that removing one would remove the other.
bool overlap(const std::string& a, const std::string& b);

} // namespace troupe::ckpt
