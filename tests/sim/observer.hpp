#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/copies/replication_host.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

struct sim_place;

/// A training process, or something one has left behind, from its start to its end.
struct process_record {
  std::uint64_t number = 0; ///< in order of starting
  std::string node;
  std::uint64_t boot = 0; ///< which launcher of that node started it
  std::int32_t pid = 0;
  generation which;
  global_rank rank = 0;
  local_rank local = 0;
  instant started{};
  std::optional<instant> ended;
  ports::exit_status status;
  std::string last_words; ///< in its log
  /// Its parent has ended and left it behind; no process of the job itself.
  bool stray = false;
  /// It was sent SIGKILL: it runs no more, though the kernel may hold it for a while.
  bool killed = false;
  /// Its launcher was killed: it is init's now, and no process of ours can know of it.
  bool beyond_reach = false;
};

/// How a simulated process ended.
enum class ending_kind {
  exited,
  killed, ///< All of a launcher, the keeper included; or a master.
  power_cut,
  crashed, ///< Only the node supervisor: its processes and its store wait for the next one.
};

/// What a generation goes on from.
struct load_outcome {
  generation by;
  std::vector<std::string> nodes;  ///< of each rank
  std::optional<ckpt::save_id> id; ///< none: it begins anew
  std::uint64_t step = 0;
  instant looked; ///< when its ranks began to look for the last time
};

/// A state of which all ranks have told each other that other nodes hold their pieces of it.
struct held_state {
  generation by;
  ckpt::save_id id;
  std::uint64_t step = 0;
  std::vector<std::string> nodes; ///< of each rank
  /// Ranks of which so many may be lost.
  struct group {
    std::vector<global_rank> ranks;
    std::uint32_t parity = 0;
  };
  std::vector<group> groups;
};

/// Hears of everything that happens. Where it sees what must not be it calls world::blame.
class observer {
 public:
  virtual ~observer() = default;

  /// A node supervisor or master has begun; `boot` counts those of its name, from 1.
  virtual void started(const std::string& host, std::uint64_t boot) {
    (void)host;
    (void)boot;
  }
  virtual void ended(const std::string& host, ending_kind how) {
    (void)host;
    (void)how;
  }
  /// A launcher has opened the workers' store, or closed it while it lived.
  virtual void store_opened(const std::string& host) { (void)host; }
  virtual void store_closed(const std::string& host) { (void)host; }
  /// A training process has a snapshot to be written; what became of it; a node's snapshots are
  /// lost.
  virtual void persist_requested(const std::string& node, const ckpt::persist_request& snapshot) {
    (void)node;
    (void)snapshot;
  }
  virtual void persist_finalized(const std::string& node, const ckpt::persist_request& snapshot,
                                 bool complete) {
    (void)node;
    (void)snapshot;
    (void)complete;
  }
  virtual void snapshots_lost(const std::string& node) { (void)node; }
  /// A node has written a step's manifest.
  virtual void step_completed(const std::string& node, const ckpt::commit_order& order) {
    (void)node;
    (void)order;
  }
  /// A node's own directory is empty now.
  virtual void disk_replaced(const std::string& node) { (void)node; }
  /// A file in the directory that a node writes to is not what was written any more.
  virtual void place_decayed(const std::string& node) { (void)node; }
  /// What others see of a file is another now, or it is gone; what it was before.
  virtual void file_changed(const sim_place& at, const std::string& name,
                            const std::optional<std::string>& before) {
    (void)at;
    (void)name;
    (void)before;
  }
  /// No saver is at work there, nor has any been asked to.
  virtual void place_rests(sim_place* at) { (void)at; }
  /// All ranks of a generation have loaded the same: a save's state, or nothing that they could
  /// have.
  virtual void loaded(const load_outcome& what) { (void)what; }
  /// A training process of this generation wants copies of a snapshot; and what became of them.
  virtual void copies_requested(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                                generation by) {
    (void)node;
    (void)snapshot;
    (void)by;
  }
  virtual void copies_finalized(const std::string& node, const ckpt::snapshot_here& snapshot,
                                const result<void>& how) {
    (void)node;
    (void)snapshot;
    (void)how;
  }
  virtual void copies_agreed(const held_state& what) { (void)what; }
  /// The launcher of a node gets a signal that ends it.
  virtual void interrupted(const std::string& host) { (void)host; }
  virtual void froze(const std::string& host) { (void)host; }
  virtual void thawed(const std::string& host) { (void)host; }
  /// An actor's log event; `component` is its place in the tree.
  virtual void said(const std::string& host, const std::string& component, const log::event& e) {
    (void)host;
    (void)component;
    (void)e;
  }
  /// A dial has begun; the Hello will be its first message.
  virtual void dialled(const std::string& from, const messages::msg<messages::Hello>& hello) {
    (void)from;
    (void)hello;
  }
  /// `from` has given a message to its link with `to`.
  virtual void sent(const std::string& from, const std::string& to, const messages::any_msg& m) {
    (void)from;
    (void)to;
    (void)m;
  }
  /// The owner at `at` was given a message off its link with `from`.
  virtual void delivered(const std::string& at, const std::string& from,
                         const messages::any_msg& m) {
    (void)at;
    (void)from;
    (void)m;
  }
  /// A record is durable.
  virtual void recorded(const messages::any_msg& record) { (void)record; }
  virtual void process_started(const process_record& p) { (void)p; }
  virtual void process_ended(const process_record& p) { (void)p; }
  /// Bytes that wait in a link's send queue, and messages delivered to an owner that has not taken
  /// them.
  virtual void link_load(const std::string& host, std::size_t queued_bytes,
                         std::size_t outstanding_messages) {
    (void)host;
    (void)queued_bytes;
    (void)outstanding_messages;
  }
  /// The owner at `host` listens to a link with `peer` from now on; and that end of it has ended,
  /// or its owner wants it to.
  virtual void link_opened(const std::string& host, const std::string& peer,
                           std::uint64_t connection) {
    (void)host;
    (void)peer;
    (void)connection;
  }
  virtual void link_ended(const std::string& host, const std::string& peer,
                          std::uint64_t connection, ports::link_end how) {
    (void)host;
    (void)peer;
    (void)connection;
    (void)how;
  }
  /// Nothing gets from one host to the other, until it does again.
  virtual void way_cut(const std::string& from, const std::string& to) {
    (void)from;
    (void)to;
  }
  virtual void way_free(const std::string& from, const std::string& to) {
    (void)from;
    (void)to;
  }
  /// How it is around a host from now on: `bad` is all but calm.
  virtual void weather_changed(const std::string& host, bool bad) {
    (void)host;
    (void)bad;
  }
  /// `host` has asked something and is owed an answer, once, by `due`; unless it is frozen then, or
  /// ends.
  virtual void asked(std::uint64_t question, const std::string& host, const std::string& what,
                     instant due) {
    (void)question;
    (void)host;
    (void)what;
    (void)due;
  }
  virtual void answered(std::uint64_t question) { (void)question; }
  /// Time has come to `now`; called often.
  virtual void time_passed(instant now) { (void)now; }
  /// The job has concluded and all launchers have ended, or the run is over.
  virtual void finished() {}
};

} // namespace troupe::sim
