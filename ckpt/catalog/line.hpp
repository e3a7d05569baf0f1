#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Which run a save is of, and which runs training went through before it
/// ([ADR 25](docs/adr/0025-a-run-has-a-term-at-its-place.md)).
///
/// Many runs save to one place: a run that goes on where another has ended, one that begins anew
/// beside it, one that was told the wrong directory. A step's number does not tell them apart, and
/// a machine's clock does not order them. So a run is known at a place by a *term*, which is part
/// of every save's generation (runtime/base/generations.hpp), and its *line* names the steps that
/// it stands upon: what it may remove by a rule, and write over.
namespace troupe::ckpt {

/// The way of training to where it is.
struct line {
  term own; ///< of the run that saves
  /// Of each run before it the newest save that training went on from, the newest first; at most
  /// limits::line_runs_max. Older runs are not in the line, and their steps stay.
  std::vector<save_id> from;

  /// Training went through this state.
  bool holds(const save_id& id) const;
  /// Or through another state of its run: one that was turned away from.
  bool touches(generation which) const;

  /// Saves of runs that are not of the line, of which training can go on from none: not complete
  /// when this run began to save here,
  std::vector<save_id> left = {};
  /// or complete, and a load has found files of theirs missing or of another size,
  std::vector<save_id> lacking = {};
  /// or with other bytes. Their steps can be saved again as long as that is so, as far as sizes
  /// tell, and no rule removes them. Of each at most limits::given_up_max, the newest.
  std::vector<save_id> damaged = {};
};

/// A run that saves at a place, as it is on record in `.troupe/runs/<term>`.
struct run_record {
  term own;        ///< of its saves here
  term by_master;  ///< as its master numbers it: another where `own` was taken already
  std::string run; ///< its name; two lives of a job have one
  std::vector<save_id> from, left = {}, lacking = {}, damaged = {}; ///< as in `line`
};

/// The run of a process that is about to save.
struct run_at_start {
  std::string run;    ///< empty: a process without a launcher, whose every life is a run of its own
  generation made_by; ///< as its master numbers it
};

/// All records that can be read; others are no loss, since manifests say the same of what is
/// complete.
result<std::vector<run_record>> run_records(ports::storage& storage);

/// The line of a run; only itself if that is not on record.
result<line> line_of(ports::storage& storage, term own);

/// The generation that its saves are to be of. It is that of its master, unless a run before it has
/// a term that is as high: terms come from clocks, and one that was ahead would be the newest for
/// all that time. Then it is one above all that are known here, found again by a later life of the
/// run. `refused`, with the remedy:
/// - where a later master of a run of this name saves: this is the isolated side of a cut, or the
///   clock of its predecessor's machine was ahead;
/// - where another run has begun since this one has: two jobs have one directory.
result<generation> saves_as(ports::storage& storage, const run_at_start& who);

/// What a run goes on from.
struct origin {
  std::optional<save_id> save; ///< of a state that it was given
  /// Of a step here, by its number, where its save is not known.
  std::optional<std::uint64_t> step;
  std::vector<save_id> lacking = {}, damaged = {}; ///< as in `line`, as its loads have found
};

/// Before the first step of this run, or of this life of it, is begun: puts its line on record.
/// `overloaded` if another run has the term by now.
result<void> begin_run(ports::storage& storage, const run_at_start& who, generation as,
                       const origin& from);

/// Complete steps, newest first, that are not of a run's line: no rule removes them, and none is
/// written over.
result<std::vector<std::uint64_t>> steps_of_others(ports::storage& storage, term own);

/// Adds a save, and the line that led to it.
void go_on_from(std::vector<save_id>& line, const save_id& save,
                const std::vector<save_id>& before);

} // namespace troupe::ckpt
