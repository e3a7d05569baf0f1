#pragma once

#include "ckpt/catalog/line.hpp"
#include "ckpt/catalog/manifest.hpp"
#include "ckpt/catalog/retention.hpp"
#include "ckpt/catalog/save_id.hpp"
#include "ckpt/catalog/step_names.hpp"
#include "ckpt/catalog/trackers.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::ckpt {

/// A step as it was found.
struct found_step {
  std::uint64_t step = 0;
  std::string directory; ///< as its marker says; empty if that is damaged
  save_id begun_by;      ///< also; without a marker it is the manifest's
  step_state state = step_state::incomplete;
  manifest says;   ///< of a complete one
  std::string why; ///< why it is not complete, in words
  /// Its marker is there. Without one a step is known by its manifest alone: what copied the place
  /// has left hidden names out.
  bool marked = false;
  bool is_no_manifest = false; ///< what lies there under the name of one

  bool is_complete() const { return state == step_state::complete; }
  bool is_unreadable() const { return state == step_state::unreadable; }
  /// Its manifest is not there, or its bytes are no version's. What could not be read, for whatever
  /// reason, may be whole.
  bool is_left() const {
    return state == step_state::incomplete || (state == step_state::damaged && is_no_manifest);
  }
};

/// A directory with a manifest that says nothing, so that it is not known of which step it is.
struct odd_directory {
  std::string name;
  step_state state = step_state::damaged; ///< or unreadable
  std::string why;
};

/// What retention did.
struct retained {
  std::vector<std::uint64_t> removed;
  /// It could not do all of its work; the next commit tries again.
  std::optional<error> not_removed;
};

/// The steps at one place of storage: which are complete, which is the newest, which go. It belongs
/// to the thread that uses it, since storage blocks. What it knows was read from there, so it
/// survives every restart. Other processes, nodes and jobs may use the same place at any moment:
/// what it relies on before it writes or removes, it reads again.
///
/// The life of a step, each line durable before the next, so that a crash at any place leaves it
/// complete or not begun to be:
///
///     begin    .troupe/steps/100 names its directory and the save that writes it
///     put      100/rank_0.pt, …, by the savers that have them
///     commit   100/troupe-manifest.json; from now on it is complete
///              dlrover_latest.txt, …
///     confirm  .troupe/confirmed/<save>: all nodes have completed it; retention counts it
///     remove   the manifest, then the directory, then .troupe/steps/100
///
/// A step may be in place: its directory is `.`, and its files lie in the place itself. Then
/// .troupe/in_place/100 is what a directory is otherwise, but for the shards:
///
///     begin    .troupe/steps/100 says `.`
///     claim    .troupe/in_place/100/a.pt, empty: from now on a.pt in the place is ours to remove
///     put      a.pt, …, by the savers that have them
///     commit   troupe-manifest-100.json; from now on it is complete
///              dlrover_latest.txt, …
///     remove   the manifest, then every claimed file, then the folder, then .troupe/steps/100
///
/// A step is complete if its manifest is of the save that its marker names, or of a newer one. So
/// one write to the marker begins a step anew, and a late manifest of an older save completes
/// nothing over files that are another save's by now.
///
/// What is in `.troupe` is a cache, but for steps that are not complete: a directory whose manifest
/// is whole is a complete step, however it came there. Its marker is made anew by the first process
/// that saves (`restore_markers`). If the manifest says that it was written to a directory of
/// another name, a person has copied the step: it can be loaded, and no run replaces or
/// removes it.
///
/// A step of a run that this one does not stand upon (line.hpp) stays, whatever rule there is, and
/// is not written over.
///
/// Files and directories that no step of ours has named are never read, replaced or removed.
class step_catalog {
 public:
  /// Reads what is there. With a node's name only shards that it wrote are expected here. `storage`
  /// outlives the catalog.
  static result<step_catalog> open(ports::storage& storage, node_name only_of = {});
  /// Of a process that has written nothing: what is missing shows when a file is read. (No node is
  /// called so.)
  static constexpr const char* expects_no_files = "\n";
  /// Looks at one step only; `find` has it, if it is there.
  static result<step_catalog> open_one(ports::storage& storage, std::uint64_t step);

  /// For a process that is about to save: markers and claims of complete steps that have none.
  result<void> restore_markers();

  /// Brings the trackers of a framework up to the newest complete step; the first thing to do after
  /// opening, since a crash may have come before a commit did. A tracker that names a later step
  /// which is there and not ours stays as it is, and is told (`take_warnings`).
  result<void> point(framework whose);

  /// Before the first shard of this save is put. From then on what an older save completed under
  /// this number is not complete any more. `refused` if the step is the newest complete one, since
  /// there is nothing newer to go on from, unless it `is_made_anew`; if a newer save has begun or
  /// completed it; if a tracker may name it still; if it is of a run that this one does not stand
  /// upon; and if its directory holds files and is no step's. After the newest was begun again
  /// `point` is due, as trackers name it.
  result<void> begin(std::uint64_t step, const std::string& directory, const save_id& by,
                     std::optional<resume_point> resumed_from = {});
  /// A life of the job went on from an earlier step, and has trained up to this one again: what an
  /// earlier life completed under this number is damaged, or a person did not want it. An older
  /// complete step is there to fall back on. `by`: a save of that life.
  bool is_made_anew(const found_step& known, const save_id& by,
                    std::optional<resume_point> resumed_from) const;
  /// Before a shard of a step that was begun is put. Of a step that is in place the file becomes
  /// its own; `refused` if it is another step's, or there and no step's: replacing it, or removing
  /// it with this step, would lose it. A step with a directory has all files there already.
  /// `put`: this save has put the file itself, and its claim is gone since.
  result<void> claim(std::uint64_t step, const std::string& file, bool put = false);

  /// Right before a shard takes its place, since writing it takes long: `refused` if its step was
  /// removed meanwhile, or begun or completed by a newer save.
  result<void> check_begun(std::uint64_t step, const save_id& by);
  /// After a shard was put: `refused` if its step was removed meanwhile, or begun by a newer save.
  /// One that was removed is begun again then, so that the next retention removes the shard too.
  result<void> check_put(std::uint64_t step, const std::string& directory, const std::string& file,
                         const save_id& by);

  /// All shards of a step that was begun are durable: it becomes complete, and the trackers name it
  /// if it is the newest. The files expected here have to be there with the sizes that the manifest
  /// says; `refused` if a newer save has begun the step meanwhile. May be repeated after an error
  /// and after a crash.
  result<void> commit(const manifest& m, framework whose);
  /// Removes what need not be kept, once it is on record that all nodes have the committed save
  /// (ckpt/catalog/confirmed_saves.hpp). Each step is looked at again before, and only those of the
  /// line of the run that saves count and go. `by`: a generation of that run; without one, that of
  /// the committed save, or of the first that is open. `stays`: steps that do not go.
  retained retain(
      retention keep, const retention_point& now, generation by = {},
      const std::function<bool(std::uint64_t)>& stays = [](std::uint64_t) { return false; });

  /// Reads a step again that another committer may have begun, completed or removed meanwhile.
  result<void> look_again(std::uint64_t step);
  /// The same for all that others may have begun, completed or removed.
  result<void> look_around();

  /// The newest complete step, if there is one: its shards expected here have the sizes that the
  /// manifest says. No copy.
  const found_step* newest() const;
  const found_step* find(std::uint64_t step) const;
  /// Every step that was begun here and not removed, also those that are not complete and why.
  const std::map<std::uint64_t, found_step>& steps() const { return steps_; }
  /// Complete steps in directories where they were not written, or whose number is another save's.
  const std::vector<found_step>& copies() const { return copies_; }
  const std::vector<odd_directory>& odd_directories() const { return odd_; }
  /// The complete ones, newest first; a copy only of a state that is not there otherwise.
  std::vector<const found_step*> complete_newest_first() const;
  /// Whether the run that saves stands upon the one that completed a step, or else has begun it.
  result<bool> is_of_line(const found_step& known, generation by);
  /// It is of a run that the saver's does not stand upon, and training can go on from it no more:
  /// `line::left`, `lacking` and `damaged`.
  result<bool> is_given_up(const found_step& known, generation by);

  bool expects_here(const shard& s) const { return only_of_.empty() || s.node == only_of_; }
  /// What a person should hear, each line once.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  step_catalog(ports::storage& storage, node_name only_of)
      : storage_(&storage), only_of_(std::move(only_of)) {}

  void read_manifest(found_step& found);
  /// False if there are others than there were.
  result<bool> look_at_unmarked();
  void look_at_directory(const std::string& directory);
  void look_at_manifest_in_place(std::uint64_t step);
  void take_unmarked(found_step found);
  result<line> line_for(generation by);
  result<std::map<std::string, std::uint64_t>> sizes_of(const found_step& found, const manifest& m);
  result<void> check_sizes(const found_step& found, const manifest& m);
  result<bool> check_newest();
  result<bool> look_once();

  result<void> check_may_begin(const found_step& known, const std::string& directory,
                               const save_id& by, std::optional<resume_point> resumed_from) const;
  result<void> check_own_line(const found_step& known, generation by);
  result<bool> has_other_manifest(const found_step& known);
  result<bool> lacks_files(const found_step& complete);
  result<void> check_own(std::uint64_t step, const std::string& directory);
  result<void> check_free(std::uint64_t step, const std::string& name);
  result<void> begin_again(const found_step& before, const save_id& by,
                           std::optional<resume_point> resumed_from);
  result<void> check_commit(const found_step& known, const manifest& m);
  result<void> check_stays(const manifest& m) const;
  result<void> point_at(const found_step& named, framework whose);
  result<bool> may_point(const tracker& to, const found_step& named);
  std::vector<step_seen> seen(const std::set<save_id>& confirmed, const line& of) const;
  result<std::set<save_id>> confirm(const save_id& committed);
  result<void> forget_removed(std::set<save_id> confirmed, const save_id& committed);
  bool remove_all(const std::vector<std::uint64_t>& going, retained& done);
  result<void> restore_marker(found_step& found);
  bool look_before_removing(std::uint64_t step);
  result<void> remove(std::uint64_t step);
  result<std::vector<std::string>> claimed_by(const found_step& found);
  result<std::vector<std::string>> remove_claims(const found_step& of,
                                                 const std::vector<std::string>& files);
  result<bool> claim_late(const found_step& of, const std::vector<std::string>& files);
  /// `late`: a claim of the step is there that was not removed.
  result<void> end_removal(std::uint64_t step, std::vector<std::string> files, bool late);

  ports::storage* storage_;
  node_name only_of_;
  std::map<std::uint64_t, found_step> steps_;
  std::vector<found_step> copies_;
  std::vector<odd_directory> odd_;
  std::set<std::string> without_manifest_; ///< directories that were looked into, and are no steps
  std::map<term, line> lines_;             ///< of those on record
  bool trackers_behind_ = true;
  /// The newest complete step, as long as it was only read, and not yet written by us.
  std::optional<std::uint64_t> found_newest_;
  std::vector<std::string> warnings_;
  std::set<std::pair<std::string, std::uint64_t>> told_; ///< trackers, and what they name
};

} // namespace troupe::ckpt
