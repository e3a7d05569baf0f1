#pragma once

#include "ckpt/catalog/place_writer.hpp"
#include "runtime/ports/testing/memory_storage.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::ckpt::testing {

/// A node that writes at a place as a job's saver and committer have it do. Saves are numbered as
/// their steps, unless a test says otherwise.
struct place_node {
  explicit place_node(ports::testing::memory_place& place, node_name who = "n0")
      : name(who), writer(std::make_unique<ports::testing::memory_storage>(place), who) {}

  static persist_request snapshot(std::uint64_t step, std::uint32_t shard = 0,
                                  std::uint32_t shards = 1, generation by = generation{1},
                                  std::uint64_t save_number = 0) {
    persist_request w;
    w.step = step;
    w.rank = shard;
    w.made_by = by;
    w.save = save_number != 0 ? save_number : step;
    w.world_size = shards;
    w.to = {"/place",
            std::to_string(step),
            "rank_" + std::to_string(shard) + ".pt",
            framework::ddp,
            shard,
            shards,
            {2, 0},
            1s};
    return w;
  }
  /// The snapshot of a step that lies in the place itself.
  static persist_request snapshot_in_place(std::uint64_t step, std::uint32_t shard,
                                           std::uint32_t shards, const std::string& file) {
    auto w = snapshot(step, shard, shards);
    w.to.directory = ".";
    w.to.file = file;
    return w;
  }
  /// All saves before this one have ended.
  static commit_order order(const persist_request& w, const std::vector<shard>& shards) {
    commit_order o;
    o.to = w.to;
    o.says.step = w.step;
    o.says.made_by = w.made_by;
    o.says.save = w.save;
    o.says.world_size = w.world_size;
    o.says.layout = layout_of(w.to.whose);
    o.says.shards = shards;
    return o;
  }

  result<ports::receipt> write(const persist_request& w, const std::string& bytes,
                               const std::atomic<bool>& stop = ports::never_stops) {
    return writer.write(w, ports::bytes_of(bytes), stop);
  }
  /// What a manifest says of a shard that this node has written.
  result<shard> put(const persist_request& w, const std::string& bytes) {
    return write(w, bytes).map([&](ports::receipt written) {
      return shard{w.to.file, written, name};
    });
  }
  /// With retention after it, as snapshot_writer does both.
  result<completed> commit(const commit_order& o) {
    auto done = writer.commit(o);
    if (done)
      writer.retain({o.to, {o.says.id(), o.says.id()}});
    return done;
  }
  /// A step of one shard.
  result<completed> save(const persist_request& w, const std::string& bytes) {
    return put(w, bytes).and_then([&](const shard& one) { return commit(order(w, {one})); });
  }
  result<completed> save(std::uint64_t step, const std::string& bytes,
                         generation by = generation{1}) {
    return save(snapshot(step, 0, 1, by), bytes);
  }

  node_name name;
  place_writer writer;
};

/// The newest complete step, as a load finds it.
inline std::uint64_t loaded_from(ports::testing::memory_place& place,
                                 const node_name& only_of = {}) {
  ports::testing::memory_storage storage(place);
  const auto catalog = step_catalog::open(storage, only_of);
  REQUIRE(catalog);
  return catalog->newest() == nullptr ? 0 : catalog->newest()->step;
}

} // namespace troupe::ckpt::testing
