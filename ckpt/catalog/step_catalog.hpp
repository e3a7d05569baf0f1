#pragma once

#include "ckpt/catalog/manifest.hpp"
#include "ckpt/catalog/retention.hpp"
#include "ckpt/catalog/trackers.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// A step as it was found.
struct found_step {
  std::uint64_t step = 0;
  std::string directory;
  step_state state = step_state::incomplete;
  manifest says;   ///< of a complete one
  std::string why; ///< why it is not complete, in words
  /// The last sequence that had been given when it was begun, as far as this process knows.
  std::uint64_t begun_after = 0;
};

struct committed {
  std::uint64_t sequence = 0;
  std::vector<std::uint64_t> removed; ///< steps that retention took
  /// Retention could not do its work; the step is complete all the same, and the next commit tries
  /// again.
  std::optional<error> not_removed;
};

/// The steps at one place of storage: which are complete, which is the newest, which go. One
/// committer for each place: the job's for a shared directory, the node's for one of its own. It
/// lives in the thread that writes, since storage blocks; what it knows was read from there,
/// so it survives every restart.
///
/// The life of a step, each line durable before the next, so that a crash at any place leaves it
/// complete or not begun to be:
///
///     begin    .troupe/steps/100 names its directory: from now on what is there is ours to remove
///     put      100/rank_0.pt, …, by the savers that have them
///     commit   100/.troupe-manifest.json; from now on it is complete
///              dlrover_latest.txt, …
///     remove   the manifest, then the directory, then .troupe/steps/100
///
/// A step may be in place: its directory is `.`, and its files lie in the place itself. Then
/// .troupe/in_place/100 is what a directory is otherwise, but for the shards:
///
///     begin    .troupe/steps/100 says `.`
///     claim    .troupe/in_place/100/a.pt, empty: from now on a.pt in the place is ours to remove
///     put      a.pt, …, by the savers that have them
///     commit   .troupe/in_place/100/.troupe-manifest.json; from now on it is complete
///              dlrover_latest.txt, …
///     remove   the manifest, then every claimed file, then the folder, then .troupe/steps/100
///
/// Files and directories that no step of ours has named are never read and never removed; in the
/// place itself they are not replaced either.
class step_catalog {
 public:
  /// Reads what is there. With a node's name only shards that it wrote are expected here. `storage`
  /// outlives the catalog.
  static result<step_catalog> open(ports::storage& storage, node_name only_of = {});

  /// Brings trackers up to the newest complete step; the first thing to do after opening, since a
  /// crash may have come before a commit did.
  result<void> point(const std::vector<tracker>& trackers);

  /// Before the first of its shards is put. An older complete step of this number is not complete
  /// any more after that; the newest complete one is `refused`: it is there, and nothing newer is.
  /// So is any that a tracker may name still.
  result<void> begin(std::uint64_t step, const std::string& directory);
  /// Before a shard of a step that was begun is put. Of a step that is in place the file becomes
  /// its own; `refused` if it is another step's, or there and no step's: replacing it, or removing
  /// it with this step, would lose it. A step with a directory has all files there already.
  result<void> claim(std::uint64_t step, const std::string& file);
  /// It will not be completed: retention may take it.
  void give_up(std::uint64_t step);

  /// All shards of a step that was begun are durable: it becomes complete, the trackers name it if
  /// it is the newest, and what need not be kept goes. May be repeated after an error and after a
  /// crash. A manifest without a sequence gets the next one.
  result<committed> commit(manifest m, const std::vector<tracker>& trackers, retention keep);

  /// Reads a step again that another committer may have begun or completed here meanwhile.
  result<void> look_again(std::uint64_t step);
  /// The same for all that others may have completed meanwhile. Before a commit, which must give
  /// the next sequence of all that is here.
  result<void> look_around();

  /// The newest complete step, if there is one: its shards expected here have the sizes that the
  /// manifest says.
  const found_step* newest() const;
  /// Every step that was begun here and not removed, also those that are not complete and why.
  const std::map<std::uint64_t, found_step>& steps() const { return steps_; }
  /// Of the next step to be completed.
  std::uint64_t next_sequence() const;

  bool expects_here(const shard& s) const { return only_of_.empty() || s.node == only_of_; }

 private:
  step_catalog(ports::storage& storage, node_name only_of)
      : storage_(&storage), only_of_(std::move(only_of)) {}

  result<void> read_step(std::uint64_t step);
  result<void> read_manifest(found_step& found);
  result<std::map<std::string, std::uint64_t>> sizes_of(const found_step& found);
  void check_sizes(found_step& found);
  void check_newest();
  result<void> check_free(std::uint64_t step, const std::string& name);
  result<void> complete(found_step& entry, manifest m);
  std::uint64_t sequence_for(const found_step& entry, generation made_by) const;
  result<void> remove(std::uint64_t step);
  result<void> remove_claimed(const std::string& folder);
  void retain(retention keep, committed& done);

  ports::storage* storage_;
  node_name only_of_;
  std::map<std::uint64_t, found_step> steps_;
  /// The highest that was ever written, whatever came of it: never given twice.
  std::uint64_t last_sequence_ = 0;
  bool trackers_behind_ = true;
  /// The newest complete step, as long as it was only read, and not yet written by us.
  std::optional<std::uint64_t> found_newest_;
};

/// Reads one shard of a complete step and compares its size and checksum with the manifest; `into`
/// has at least its size.
result<void> load_shard(ports::storage& storage, const found_step& from, const shard& which,
                        ports::bytes_room into, const std::atomic<bool>& stop);

} // namespace troupe::ckpt
