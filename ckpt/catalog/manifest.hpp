#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::ckpt {

/// One file of a step.
struct shard {
  std::string name; ///< below the step's directory
  ports::receipt file;
  node_name node; ///< its writer: where directories are not shared, the file is only there
};

/// What a complete step consists of. A step is complete when this is in its directory, and not
/// before: it is written last.
struct manifest {
  std::uint64_t step = 0;
  generation made_by;
  std::uint64_t save = 0; ///< of that generation
  std::uint32_t world_size = 0;
  std::string layout; ///< whose files they are: "ddp"
  /// Where they were written, below the place. A step that lies elsewhere is a copy of a person's.
  std::string directory;
  /// The newest save of each earlier run that training went through before this one: see line.hpp.
  std::vector<save_id> line;
  /// The node that wrote this manifest. Several nodes complete one step, each in its own directory
  /// or all in one.
  node_name completed_by;
  std::vector<shard> shards;

  save_id id() const { return {made_by, save}; }
};

/// The name of a manifest in its step's directory. A step's files are all readable without it. Not
/// hidden: what copies a directory and leaves hidden names out must not leave out what makes it a
/// step.
inline constexpr std::string_view manifest_name = "troupe-manifest.json";

/// What is wrong with one that was made by us or by a peer, or nothing.
result<void> check(const manifest& m);

/// JSON, one shard a line, the checksum of all before it as the last member.
std::string to_text(const manifest& m);

/// The reverse. `invalid` for a text that is damaged, of another version, or names what must not be
/// opened; every byte is covered by the checksum.
result<manifest> manifest_of(std::string_view text);

} // namespace troupe::ckpt
