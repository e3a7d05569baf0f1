#pragma once

#include "ckpt/catalog/manifest.hpp"
#include "ckpt/catalog/retention.hpp"
#include "ckpt/catalog/snapshot_here.hpp"
#include "ckpt/catalog/trackers.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/storage.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// Where a training process wants a snapshot of its state written, and what else belongs to it.
struct destination {
  std::string place;     ///< a directory, absolute
  std::string directory; ///< of the step, below it; or `.`: the place itself
  std::string file;      ///< of this shard, below that
  framework whose = framework::ddp;
  std::uint32_t shard = 0, shards = 1; ///< this one of so many make the step
  retention keep;
  duration save_within{}; ///< for the shards of all ranks
  /// What the job's training went on from in this life, if that is known.
  std::optional<resume_point> resumed_from;
};

/// One that is to be written. It stays as it is until it is finalized, whatever becomes of its
/// process.
struct persist_request : snapshot_here {
  destination to;
};

struct commit_order {
  destination to;
  manifest says;
};

/// A step is complete.
struct completed {
  std::vector<std::string> warnings; ///< of this commit and of what followed earlier ones
  bool shared = false;               ///< another node had completed it: this is its directory, too
};

/// What need not be kept may go: a step is complete at all nodes that have a part of it.
struct retain_order {
  destination to;
  retention_point now;
  /// The step whose save has ended: begun again, it may not be what it was seen to be.
  std::optional<std::uint64_t> ended;
  generation by; ///< whose save it was
};

/// The memory of this node's training processes, and the places that snapshots go to. Thread-safe;
/// nothing blocks; callbacks come from another thread. The writes to one place are done in the
/// order in which they were asked for, and so are its commits; neither waits for the other, nor for
/// another place.
class checkpoint_host {
 public:
  virtual ~checkpoint_host() = default;

  /// From now on each snapshot that is requested is told, first those that are requested already: a
  /// saver that comes after one that crashed hears of all again.
  virtual void watch(std::function<void(const persist_request&)> on_request) = 0;

  /// `done` is called when every snapshot that was requested before this call has been told.
  virtual void look(std::function<void()> done) = 0;

  /// Writes it under its name; it is durable when `done` is called.
  virtual void write(const persist_request& snapshot,
                     std::function<void(result<ports::receipt>)> done) = 0;

  virtual void commit(const commit_order& order, std::function<void(result<completed>)> done) = 0;
  /// When there is nothing else to do at that place. What it could not do is among the warnings of
  /// the next commit.
  virtual void retain(const retain_order& order) = 0;

  /// What became of it: its process may hear, and its memory is free for other snapshots.
  virtual void finalize(const persist_request& snapshot, const result<void>& how) = 0;

  /// The newest snapshot of every training process here that all ranks have (if that is not known:
  /// its newest), of each place that it saves to, is requested too, unless it was before.
  virtual void request_newest() = 0;
};

/// For a node without memory for snapshots.
class no_checkpoint_host final : public checkpoint_host {
 public:
  void watch(std::function<void(const persist_request&)>) override {}
  void look(std::function<void()> done) override { done(); }
  void write(const persist_request&, std::function<void(result<ports::receipt>)> done) override {
    done(failure(errc::invalid, "there is no memory for images"));
  }
  void commit(const commit_order&, std::function<void(result<completed>)> done) override {
    done(failure(errc::invalid, "there is no memory for images"));
  }
  void retain(const retain_order&) override {}
  void finalize(const persist_request&, const result<void>&) override {}
  void request_newest() override {}
};

} // namespace troupe::ckpt
