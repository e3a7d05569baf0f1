#include "tests/actors/vocabulary.hpp"

#include "messages/node_names.hpp"

#include <utility>

namespace troupe::actors::testing {

using namespace messages;

namespace {

constexpr std::uint32_t slots = 2;

author& someone() {
  thread_local author someone("test");
  return someone;
}

void write_failures(capnp::List<WorkerFailure>::Builder out, const node_name& node,
                    const std::vector<int>& exit_codes) {
  for (unsigned i = 0; i < exit_codes.size(); ++i) {
    out[i].setNode(node);
    out[i].setLocalRank(i);
    out[i].setRank(i);
    out[i].setPid(static_cast<std::int32_t>(100 + i));
    out[i].setExitCode(exit_codes[i]);
    out[i].setMessage("exit code " + std::to_string(exit_codes[i]));
  }
}

void write_state(NodeState::Builder out, const doing& d, const node_name& node = "?") {
  out.setGeneration(d.about.value);
  out.setPhase(d.phase);
  out.setStorePort(d.store_port);
  out.setStoreHosted(true);
  write_failures(out.initFailures(static_cast<unsigned>(d.exit_codes.size())), node, d.exit_codes);
}

void write_world(World::Builder out, std::uint64_t g, const std::vector<node_name>& nodes,
                 std::uint32_t restart_count) {
  out.setGeneration(g);
  out.setRestartCount(restart_count);
  out.setWorldSize(static_cast<std::uint32_t>(nodes.size()) * slots);
  auto members = out.initMembers(static_cast<unsigned>(nodes.size()));
  for (unsigned i = 0; i < nodes.size(); ++i) {
    members[i].setNode(nodes[i]);
    members[i].setAddress(nodes[i] + ".lan");
    members[i].setSlots(slots);
    members[i].setGroupRank(i);
    members[i].setFirstRank(i * slots);
    members[i].setIncarnation(1);
  }
}

} // namespace

// ---- messages ----

doing nothing() {
  return {};
}
doing idle_after(std::uint64_t g) {
  return {NodeState::Phase::IDLE, generation{g}, 0, {}};
}
doing draining(std::uint64_t g) {
  return {NodeState::Phase::DRAINING, generation{g}, 0, {}};
}
doing ready_for(std::uint64_t g, std::uint16_t store_port) {
  return {NodeState::Phase::PREPARED, generation{g}, store_port, {}};
}
doing running_in(std::uint64_t g) {
  return {NodeState::Phase::RUNNING, generation{g}, 0, {}};
}
doing finished_in(std::uint64_t g) {
  return {NodeState::Phase::FINISHED, generation{g}, 0, {}};
}
doing failed_in(std::uint64_t g, std::vector<int> exit_codes) {
  return {NodeState::Phase::FAILED, generation{g}, 0, std::move(exit_codes)};
}

msg<Hello> hello(const node_name& node, std::uint64_t which, const tweak<Hello>& change) {
  return someone().write<Hello>({}, [&](Hello::Builder b) {
    b.setJob("job");
    b.setNode(node);
    b.setIncarnation(which);
    b.setAddress(node + ".lan");
    b.setSlots(slots);
    b.setRevision(protocol_revision);
    b.initState();
    if (change)
      change(b);
  });
}

msg<NodeState> node_state(const doing& d) {
  return someone().write<NodeState>(d.about, [&](NodeState::Builder b) { write_state(b, d); });
}

msg<NodePresent> present(const node_name& node, const doing& d, const tweak<NodePresent>& change) {
  return someone().write<NodePresent>({}, [&](NodePresent::Builder b) {
    b.setNode(node);
    b.setIncarnation(1);
    b.setAddress(node + ".lan");
    b.setSlots(slots);
    b.setWantedRank(-1);
    write_state(b.initState(), d, node);
    if (change)
      change(b);
  });
}

msg<NodeAway> away(const node_name& node) {
  return someone().write<NodeAway>({}, [&](auto b) {
    b.setNode(node);
    b.setReason("its link broke");
  });
}

msg<NodeLost> lost(const node_name& node) {
  return someone().write<NodeLost>({}, [&](auto b) {
    b.setNode(node);
    b.setReason("it burnt down");
  });
}

msg<Prepared> prepared(const node_name& node, std::uint64_t g, std::uint16_t store_port) {
  return someone().write<Prepared>(generation{g}, [&](auto b) {
    b.setNode(node);
    b.setStorePort(store_port);
    b.setStoreHosted(true);
  });
}

msg<Conclude> conclude(bool success, const std::string& reason) {
  return someone().write<Conclude>({}, [&](auto b) {
    b.setSuccess(success);
    b.setReason(reason);
  });
}

msg<Running> running(const node_name& node, std::uint64_t g) {
  return someone().write<Running>(generation{g}, [&](auto b) { b.setNode(node); });
}

msg<Failed> failed(const node_name& node, std::uint64_t g, const std::vector<int>& exit_codes) {
  return someone().write<Failed>(generation{g}, [&](auto b) {
    b.setNode(node);
    write_failures(b.initFailures(static_cast<unsigned>(exit_codes.size())), node, exit_codes);
  });
}

msg<Failed> failed_with_words(const node_name& node, std::uint64_t g, const std::string& said) {
  return someone().write<Failed>(generation{g}, [&](auto b) {
    b.setNode(node);
    write_failures(b.initFailures(1), node, {1});
    b.getFailures()[0].setMessage(said);
  });
}

msg<Stopped> stopped(const node_name& node, std::uint64_t g, const std::vector<int>& exit_codes) {
  return someone().write<Stopped>(generation{g}, [&](auto b) {
    b.setNode(node);
    write_failures(b.initFailures(static_cast<unsigned>(exit_codes.size())), node, exit_codes);
  });
}

msg<WorkerStarted> worker_started(std::uint64_t g, local_rank local, std::int32_t pid) {
  return someone().write<WorkerStarted>(generation{g}, [&](auto b) {
    b.setLocalRank(local);
    b.setPid(pid);
  });
}

msg<WorkerEnded> worker_ended(std::uint64_t g, local_rank local, const ending_of& e) {
  const auto microseconds = [](duration d) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(d).count());
  };
  return someone().write<WorkerEnded>(generation{g}, [&](auto b) {
    auto r = b.initReport();
    r.setLocalRank(local);
    r.setPid(e.before_start ? 0 : e.pid);
    r.setExitCode(e.before_start ? 1 : e.how.code());
    r.setMessage(e.why.message);
    r.setTraceback(e.why.traceback);
    r.setLogFile(e.why.error_file);
    r.setUnixTimeMs(e.why.unix_time_ms);
    r.setLogTail(e.why.log_tail);
    r.setAgoUs(microseconds(e.why.ago));
    r.setBeforeStart(e.before_start);
    b.setSignalled(e.signalled.has_value());
    b.setSignalledUs(microseconds(e.signalled.value_or(duration{})));
  });
}

msg<Finished> finished(const node_name& node, std::uint64_t g, bool asked) {
  return someone().write<Finished>(generation{g}, [&](auto b) {
    b.setNode(node);
    b.setAsked(asked);
  });
}

msg<EndWanted> end_wanted(std::uint64_t g) {
  return someone().write<EndWanted>(generation{g}, [](auto b) { b.setReason("more are here"); });
}

msg<EndAnswer> end_answer(const node_name& node, std::uint64_t g, bool begun) {
  return someone().write<EndAnswer>(generation{g}, [&](auto b) {
    b.setNode(node);
    b.setBegun(begun);
  });
}

msg<Sealed> sealed(std::uint64_t g, const std::vector<node_name>& nodes,
                   std::uint32_t restart_count) {
  return someone().write<Sealed>(
      generation{g}, [&](auto b) { write_world(b.initWorld(), g, nodes, restart_count); });
}

msg<WorldProposed> proposed(std::uint64_t g, const std::vector<node_name>& nodes,
                            std::uint32_t restart_count) {
  return someone().write<WorldProposed>(
      generation{g}, [&](auto b) { write_world(b.initWorld(), g, nodes, restart_count); });
}

msg<Prepare> prepare(std::uint64_t g, const std::vector<node_name>& nodes, const node_name& node,
                     std::uint32_t restart_count) {
  const auto all = proposed(g, nodes, restart_count);
  return someone().write<Prepare>(generation{g}, [&](auto b) {
    auto world = all.read();
    auto seat = b.initSeat();
    for (const auto m : world->getWorld().getMembers())
      if (node == m.getNode().cStr())
        seat.setMember(m);
    seat.setWorldSize(world->getWorld().getWorldSize());
    seat.setNodes(world->getWorld().getMembers().size());
    seat.setRestartCount(restart_count);
  });
}

msg<RankOwners> owners(std::uint64_t g, const std::vector<node_name>& nodes) {
  return someone().write<RankOwners>(generation{g}, [&](auto b) {
    auto names = b.initNodes(static_cast<unsigned>(nodes.size()));
    auto ranks = b.initSlots(static_cast<unsigned>(nodes.size()));
    for (unsigned i = 0; i < nodes.size(); ++i) {
      names.set(i, fingerprint(nodes[i]));
      ranks.set(i, slots);
    }
  });
}

msg<Start> start(std::uint64_t g) {
  return someone().write<Start>(generation{g}, [&](auto b) {
    b.setStoreAddress("a.lan");
    b.setStorePort(29400);
    b.setStoreHosted(true);
  });
}

msg<Stop> stop(std::uint64_t g) {
  return someone().write<Stop>(generation{g}, [&](auto b) { b.setReason("enough"); });
}

any_msg proposed_record(std::uint64_t g) {
  return someone()
      .write<GenerationProposed>(generation{g}, [&](auto b) { b.setGeneration(g); })
      .any();
}

any_msg sealed_record(std::uint64_t g, const std::vector<node_name>& nodes,
                      std::uint32_t restart_count) {
  return someone()
      .write<GenerationSealed>(generation{g},
                               [&](auto b) {
                                 write_world(b.initWorld(), g, nodes, restart_count);
                                 b.setStoreAddress("a.lan");
                                 b.setStorePort(29400);
                                 b.setStoreHosted(true);
                               })
      .any();
}

any_msg counted_record(std::uint64_t g, std::uint32_t restart_count, const node_name& node) {
  return someone()
      .write<RestartCounted>(generation{g},
                             [&](auto b) {
                               b.setGeneration(g);
                               b.setRestartCount(restart_count);
                               b.setNode(node);
                             })
      .any();
}

any_msg concluded_record(bool success) {
  return someone()
      .write<Concluded>({},
                        [&](auto b) {
                          b.setSuccess(success);
                          b.setReason("as recorded");
                        })
      .any();
}

// ---- checkpoints ----

namespace {

void write_saving(StepKey::Builder to, const saving& s) {
  to.setPlace(s.place);
  to.setStep(s.step);
  to.setGeneration(s.g);
  to.setSave(s.step);
}

void write_file(ShardFile::Builder to, const node_name& node, std::uint32_t shard) {
  to.setName("rank_" + std::to_string(shard) + ".pt");
  to.setBytes(shard + 1);
  to.setNode(node);
}

template<class Fill>
msg<ShardReport> shard_report(const node_name& node, std::uint32_t shard, const saving& s,
                              Fill fill) {
  return someone().write<ShardReport>(generation{s.g}, [&](ShardReport::Builder b) {
    b.setNode(node);
    write_saving(b.initKey(), s);
    b.setShard(shard);
    b.setShards(s.shards);
    b.setWorldSize(s.shards);
    b.setSaveWithinMs(600'000);
    fill(b);
  });
}

} // namespace

msg<ShardReport> shard_written(const node_name& node, std::uint32_t shard, const saving& s) {
  return shard_report(node, shard, s,
                      [&](ShardReport::Builder b) { write_file(b.initWritten(), node, shard); });
}

msg<ShardReport> shard_failed(const node_name& node, std::uint32_t shard, const saving& s) {
  return shard_report(node, shard, s,
                      [](ShardReport::Builder b) { b.setFailed("no space left on device"); });
}

msg<CommitStep> commit_step(const std::vector<node_name>& nodes, bool committed, const saving& s) {
  return someone().write<CommitStep>(generation{s.g}, [&](CommitStep::Builder b) {
    write_saving(b.initKey(), s);
    b.setWorldSize(s.shards);
    b.setCommitted(committed);
    auto files = b.initFiles(static_cast<unsigned>(nodes.size()));
    for (unsigned i = 0; i < nodes.size(); ++i)
      write_file(files[i], nodes[i], i);
  });
}

msg<StepCommitted> step_committed(const node_name& node, bool complete, const saving& s,
                                  bool shared) {
  return someone().write<StepCommitted>(generation{s.g}, [&](StepCommitted::Builder b) {
    b.setNode(node);
    write_saving(b.initKey(), s);
    b.setComplete(complete);
    b.setShared(shared);
    if (!complete)
      b.setWhy("read-only file system");
  });
}

msg<StepFinalized> step_finalized(bool complete, const saving& s) {
  return someone().write<StepFinalized>(generation{s.g}, [&](StepFinalized::Builder b) {
    write_saving(b.initKey(), s);
    b.setComplete(complete);
    b.setOpenFrom(s.open_from != 0 ? s.open_from : s.step + 1);
    b.setOpenFromGeneration(s.g);
    if (!complete)
      b.setWhy("a shard is missing");
  });
}

} // namespace troupe::actors::testing
