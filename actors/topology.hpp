#pragma once

#include "actors/master/addresses.hpp"
#include "actors/node_supervisor/addresses.hpp"
#include "actors/operator/addresses.hpp"
#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/copies/replication_host.hpp"
#include "diag/progress_host.hpp"
#include "probe/probe_host.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/ports/cluster.hpp"
#include "runtime/ports/journal_store.hpp"
#include "runtime/ports/keeping.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/store.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/ports/worker_links.hpp"
#include "runtime/sup/spec.hpp"

#include <functional>
#include <memory>

/// The supervision trees, as data. The first file to read: which actors exist, which of them
/// supervises which, in which order they start, and why.
namespace troupe::actors {

struct master_world {
  std::shared_ptr<ports::transport> transport;
  std::shared_ptr<ports::journal_store> journal;
  /// Null: nothing is read of the network.
  std::shared_ptr<topology_source> topology = nullptr;
  std::shared_ptr<ports::cluster> cluster = std::make_shared<ports::no_cluster>();
  /// Of a master that is the witness of its network_check.
  std::shared_ptr<ports::bulk_links> bulk = std::make_shared<ports::no_bulk_links>();
};

struct master_options {
  journal_options journal;
  membership_options membership;
  rendezvous_options rendezvous;
  recovery_options recovery;
  gateway::options gateway;
  diagnosis::options diagnosis;
  network_check_options network_check;
};

/// What the master tells the process that runs it. An actor's thread makes these calls.
struct master_events {
  std::function<void(const ports::endpoint&)> on_listening;
  std::function<void(const recovery_core::verdict&)> on_verdict;
  /// A node has said options of the job that this master was not told. They are recorded; a tree
  /// that begins with them is to follow this one.
  std::function<void(const messages::job_words&)> on_job_options = [](const auto&) {};
  /// After the verdict: the last node has heard it and left, or is lost.
  std::function<void()> on_everyone_left;
};

sup::tree master_tree(const master_world& world, const master_options& options,
                      const master_addresses& at, const master_events& events);

struct node_world {
  std::shared_ptr<ports::transport> transport;
  std::shared_ptr<ports::process_host> processes;
  std::shared_ptr<ports::store_host> stores;
  std::shared_ptr<ports::keeping> keeping = std::make_shared<ports::keeps_nothing>();
  std::shared_ptr<ckpt::checkpoint_host> checkpoints = std::make_shared<ckpt::no_checkpoint_host>();
  std::shared_ptr<ckpt::replication_host> copies = std::make_shared<ckpt::no_replication_host>();
  std::shared_ptr<diag::progress_host> progress = std::make_shared<diag::no_progress_host>();
  std::shared_ptr<ports::worker_links> workers = std::make_shared<ports::no_worker_links>();
  std::shared_ptr<ports::bulk_links> bulk = std::make_shared<ports::no_bulk_links>();
  std::shared_ptr<probe::probe_host> probes = std::make_shared<probe::no_probe_host>();
};

struct node_options {
  uplink_options uplink;
  agent_options agent;
  training_program program;
  watch_policy watch;
  ports::endpoint master;
  /// For incarnations and jitter.
  std::uint64_t seed = 0;
};

struct node_events {
  std::function<void(const node_outcome&)> on_over;
};

sup::tree node_tree(const node_world& world, const node_options& options, const node_addresses& at,
                    const node_events& events);

/// Of actor-operator, which makes what jobs need in Kubernetes.
sup::tree operator_tree(const operator_options& options, const operator_world& world,
                        const operator_addresses& at);

} // namespace troupe::actors
