#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/copies/replication_host.hpp"
#include "ckpt/load/load_plan.hpp"
#include "tests/sim/copies.hpp"
#include "tests/sim/fiber.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/places.hpp"
#include "tests/sim/processes.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

/// Of each so many nodes that follow each other so many may be lost at once: others of them hold
/// pieces of their snapshots. Without a parity none do.
struct redundancy {
  std::uint32_t members = 2, parity = 0;
};

struct checkpoint_options {
  /// One directory for all nodes, or one for each.
  bool shared = true;
  /// One shard, the same at all ranks; else each rank has one of its own.
  bool replicated = false;
  /// Files lie in the place itself.
  bool in_place = false;
  /// Other people's files are there before the job begins.
  bool shared_with_people = false;
  /// And what they read names one of theirs, which is later than all that the job saves.
  bool tracked_by_people = false;
  /// Of loads: training begins again some steps before what it has loaded.
  double goes_back = 0;
  /// How often training saves by itself, and once more at its end; zero: never.
  duration every{};
  duration write_min = 5ms;
  duration write_max = 400ms;
  duration save_within = 10s;
  ckpt::retention keep;
  double fails = 0; ///< a write, for want of room
  /// Of states with a shard for each rank.
  redundancy copies;
};

/// The snapshots in the memory of all machines, and the directories that they are written to, with
/// the product's own slots, place_writer and step_catalog. Snapshots outlive their process and its
/// node supervisor, not their launcher. What is in a directory outlives all of them.
class checkpoints {
 public:
  checkpoints(world& of, trainers& training, checkpoint_options options);
  ~checkpoints();

  std::shared_ptr<ckpt::checkpoint_host> host_of(const host_ptr& launcher);
  std::shared_ptr<ckpt::replication_host> copier_of(const host_ptr& launcher);
  /// While its actors are still there, and after that.
  void launcher_ends(const host_ptr& launcher);
  void launcher_ended(const host_ptr& launcher, ending_kind how);

  /// What is in a directory that people use too, and stays there.
  static const std::map<std::string, std::string>& files_of_people();

  checkpoint_options& options() { return options_; }
  /// The directory that a node writes to.
  sim_place& place_of(const std::string& node);
  /// So often a directory has been disturbed, or fate has done something to it.
  std::uint64_t troubles() const;
  /// Whether one of them is slow, or may fail.
  bool any_is_ill() const;
  /// All disks get well, and quick.
  void heal();
  /// A node of its own directory comes with a new disk. A shared one stays.
  void replace_disk(const std::string& node);
  /// Of the machine that has the directory which this node writes to.
  void lose_power(const std::string& node);
  /// A byte of a shard, a manifest or a marker is another one from now on.
  void decay(const std::string& node);
  /// A job with a newer master, of one process, that was told to use the same directory.
  void save_by_another_job(const std::string& node);

  /// If all ranks train: each has its snapshot a moment later, unless it ends before; when all have
  /// theirs they want it written. Without one rank the others want theirs written all the same.
  void save(std::uint64_t step, std::optional<global_rank> without = std::nullopt);
  /// The same for copies at all other nodes, of which so many may be lost, instead of a file.
  void copy(std::uint64_t step, std::uint32_t parity);
  /// Says which step a new life of training would find in memory.
  void say_newest_in_memory();
  /// Each world that trains saves a step later than what it has loaded or saved.
  void save_next();
  /// That world once more, at once: training is at its end.
  void save_last(generation which);

  // For loads.
  /// What a rank's memory holds; made when it is asked for first.
  ckpt::slots memory_of(const std::string& node, local_rank local);
  /// Puts a snapshot there that comes from elsewhere; false: there is no room.
  bool put(const std::string& node, local_rank local, const ckpt::slot_snapshot& what);
  /// What a snapshot holds: other bytes for each save, step and rank.
  std::string content_of(const ckpt::slot_snapshot& what) const;
  /// What its node holds of others' for this local rank, of a world of this size.
  std::vector<ckpt::parity_seen> parities_at(const std::string& node, local_rank local,
                                             std::uint32_t world_size);
  const sim_piece_memory& memory_of_others(const std::string& node) {
    return copies_.memory_of(node);
  }
  /// All ranks have this one: it is what they go back to if the next is lost, and copies of it are
  /// wanted, as the nodes may be others now.
  void go_back_to(generation which, const ckpt::state_id& what);
  /// Training goes on from this step.
  void go_on_from(generation which, std::optional<std::uint64_t> loaded);
  const trainers& training() const { return training_; }
  world& all() { return world_; }

 private:
  friend class sim_checkpoint_host;
  friend class sim_replication_host;

  /// From what all ranks have told each other to a request of one of them.
  static constexpr duration agreement_most = 10ms;

  struct memory {
    std::map<local_rank, std::unique_ptr<ckpt::slot_table>> tables;
  };
  /// One save of all ranks.
  struct attempt {
    generation which;
    std::uint64_t number = 0, step = 0;
    std::vector<std::uint64_t> ranks;           ///< their processes
    std::map<std::uint64_t, std::size_t> slots; ///< by process, of what was copied
    bool agreed = true;
    bool to_disk = true;
    redundancy copies;
  };
  /// The snapshots of which copies were wanted last in a generation.
  struct wanted_copies {
    struct snapshot {
      std::size_t slot = 0;
      std::uint64_t sequence = 0;
      ckpt::slot_group by;
      enum { not_yet, requested, refused } how = not_yet;
    };
    ckpt::state_id what;
    std::map<std::uint64_t, snapshot> of; ///< by process
    bool told = false;                    ///< that all are held
  };
  enum class copies_state { under_way, failed, held };

  std::optional<generation> newest_that_trains() const;
  void save_in(generation which, std::uint64_t step, std::optional<global_rank> without);
  void copy_state(const std::shared_ptr<attempt>& now, std::optional<global_rank> without = {});
  std::uint64_t next_step(generation which);
  std::shared_ptr<attempt> begin_attempt(generation which, std::uint64_t step);
  void keep(attempt& a, std::uint64_t process);
  void agree(const attempt& a, bool at_once);
  void request_persist(std::uint64_t process, std::size_t slot, std::uint64_t sequence);
  ckpt::persist_request request_in(const std::string& node, local_rank local, std::size_t slot);
  std::vector<ckpt::persist_request> requests_of(const std::string& node);
  /// Of the last ones; none: they are held nowhere.
  copies_state last_copies(generation which);
  /// What all ranks say of them: whether the next may be made.
  bool agree_on_copies(generation which);
  /// Of each process's snapshot in such a slot.
  void want_copies(generation which, const ckpt::state_id& what, const redundancy& how,
                   const std::map<std::uint64_t, std::size_t>& slots);
  void request_copies(generation which, std::uint64_t process);
  std::vector<ckpt::snapshot_to_copy> copies_requested_of(const std::string& node);
  void finalize(const std::string& node, const ckpt::persist_request& snapshot,
                const result<void>& how);
  void finalize_copy(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                     const result<void>& how);

  world& world_;
  trainers& training_;
  checkpoint_options options_;
  std::map<std::string, sim_place> places_;
  std::map<std::string, memory> memories_;
  std::map<std::string, std::weak_ptr<class sim_checkpoint_host>> hosts_; ///< of the launcher there
  std::map<std::string, std::weak_ptr<class sim_replication_host>> copiers_; ///< likewise
  copies copies_{world_};
  std::vector<std::shared_ptr<fiber>> other_jobs_;
  std::map<generation, std::uint64_t> at_step_; ///< those that have loaded
  std::map<generation, std::uint64_t> saves_;   ///< so far
  std::map<generation, std::uint64_t> resumed_; ///< from which step; of those that have loaded
  std::map<generation, wanted_copies> last_copies_;
};

} // namespace troupe::sim
