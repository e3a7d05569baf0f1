#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "tests/sim/copies.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/processes.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

struct checkpoint_options {
  /// One directory for all nodes, or one for each.
  bool shared = true;
  /// How often training saves by itself, and once more at its end; zero: never.
  duration every{};
  duration write_min = 5ms;
  duration write_max = 400ms;
  duration save_within = 10s;
  double fails = 0;    ///< a write, for want of room
  bool copied = false; ///< what is saved is held by other nodes, too
};

/// The snapshots in the memory of all machines, and the directories that they are written to. A
/// snapshot is as its process requested it until it is finalized; it outlives the process and its
/// node supervisor, not its launcher. What is in a directory outlives everybody.
///
/// Of a directory it models what the actors could do wrong: whether the shards that a manifest
/// names are there as it says. A shard of an older generation does not replace one of a newer.
class checkpoints {
 public:
  checkpoints(world& of, const trainers& training, checkpoint_options options)
      : world_(of), training_(training), options_(options) {}

  std::shared_ptr<ckpt::checkpoint_host> host_of(const host_ptr& launcher);
  /// While its actors are still there, and after that.
  void launcher_ends(const host_ptr& launcher);
  void launcher_ended(const host_ptr& launcher, ending_kind how);

  checkpoint_options& options() { return options_; }

  /// If all ranks train: each has its snapshot a moment later, unless it ends before.
  void save(std::uint64_t step, std::optional<global_rank> without = std::nullopt);
  /// The same for copies at other nodes, of which so many may be lost.
  void copy(std::uint64_t step, std::uint32_t parity);
  /// Says which step a new life of training would find in memory.
  void say_newest_in_memory() const;
  /// The step after the newest complete one, or a later one if that was tried by this generation.
  void save_next();

 private:
  friend class sim_checkpoint_host;

  struct shard_file {
    ports::receipt what;
    generation made_by;
  };
  struct saved_step {
    std::map<std::string, shard_file> files;
    std::optional<generation> complete; ///< whose
    std::uint64_t sequence = 0;
  };
  struct directory {
    std::map<std::uint64_t, saved_step> steps;
    std::uint64_t last_sequence = 0;
  };
  struct memory {
    std::vector<ckpt::persist_request> requests;
    std::map<local_rank, std::uint64_t> saved; ///< snapshots so far
    std::vector<ckpt::snapshot_to_copy> to_copy;
    std::vector<ckpt::snapshot_to_copy> held; ///< by others; whole at all ranks or not
  };

  /// The processes of all ranks, if all train.
  std::vector<std::uint64_t> whole_world() const;
  ckpt::snapshot_here snapshot_of(const process_record& p, std::uint64_t step,
                                  std::uint32_t world_size);
  void request_persist(const process_record& p, std::uint64_t step, std::uint32_t world_size);
  void request_copies(const process_record& p, std::uint64_t step,
                      const std::vector<std::uint64_t>& all, std::uint32_t parity);
  directory& directory_of(const std::string& node) {
    return directories_[options_.shared ? "" : node];
  }
  result<ports::receipt> put(const std::string& node, const ckpt::persist_request& snapshot);
  result<std::uint64_t> commit(const std::string& node, const ckpt::commit_order& order);
  void finalize(const std::string& node, const ckpt::persist_request& snapshot,
                const result<void>& how);
  void finalize_copy(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                     const result<void>& how);

  world& world_;
  const trainers& training_;
  checkpoint_options options_;
  std::map<std::string, directory> directories_;
  std::map<std::string, memory> memories_;
  std::map<std::string, std::weak_ptr<class sim_checkpoint_host>> hosts_; ///< of the launcher there
  copies copies_{world_};
  generation last_saved_by_{};
  std::uint64_t last_tried_ = 0;
};

} // namespace troupe::sim
