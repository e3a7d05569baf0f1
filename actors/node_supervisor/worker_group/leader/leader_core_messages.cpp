// What leader_core says: its messages, the workers' places, and its state in words.

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

/// The end of a text, which is where a traceback says what happened.
std::string last_part(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(text.size() - most);
}

} // namespace

void leader_core::say_prepared(effects& out) {
  out.push_back(report{author_
                           .write<Prepared>(current_,
                                            [&](auto b) {
                                              b.setNode(options_.node);
                                              b.setStorePort(store_port_);
                                              b.setStoreHosted(store_open_);
                                            })
                           .any()});
}

msg<Underway> leader_core::underway(const msg<Start>& m) {
  return author_.write<Underway>(current_, [&](Underway::Builder b) {
    auto start = m.read();
    auto prepare = world().read();
    b.setWorld(prepare->getWorld());
    b.setStoreAddress(start->getStoreAddress());
    b.setStorePort(start->getStorePort());
    b.setStoreHosted(start->getStoreHosted());
  });
}

assignment leader_core::place_of(local_rank local, const msg<Start>& m) const {
  auto start = m.read();
  auto prepare = world().read();
  auto w = prepare->getWorld();
  assignment a;
  a.which = current_;
  a.restart_count = w.getRestartCount();
  a.local = local;
  a.rank = first_rank_ + local;
  a.local_world_size = options_.slots;
  a.world_size = w.getWorldSize();
  a.group_rank = group_rank_;
  a.group_world_size = w.getMembers().size();
  a.store_address = start->getStoreAddress().cStr();
  a.store_port = start->getStorePort();
  a.store_hosted = start->getStoreHosted();
  return a;
}

msg<Failed> leader_core::failures(instant now) {
  return author_.write<Failed>(current_, [&](auto b) {
    b.setNode(options_.node);
    write_failures(b.initFailures(static_cast<unsigned>(failures_.size())), now);
    b.setEnded(!any_alive());
  });
}

void leader_core::write_failures(capnp::List<WorkerFailure>::Builder out, instant now) const {
  std::size_t room = limits::tracebacks_max, log_room = limits::log_tails_max;
  for (unsigned i = 0; i < failures_.size(); ++i) {
    const auto& f = failures_[i];
    out[i].setNode(options_.node);
    out[i].setHost(options_.host);
    out[i].setLocalRank(f.local);
    out[i].setRank(first_rank_ + f.local);
    out[i].setPid(f.pid);
    out[i].setExitCode(f.exit_code);
    out[i].setMessage(f.why.message.substr(0, limits::failure_line_max));
    out[i].setTraceback(last_part(f.why.traceback, std::min(room, limits::traceback_max)));
    room -= out[i].getTraceback().size();
    out[i].setLogFile(f.why.error_file);
    out[i].setUnixTimeMs(f.why.unix_time_ms);
    out[i].setBeforeStart(f.before_start);
    out[i].setOutOfMemory(f.why.out_of_memory);
    if (!f.why.log_tail.empty() && f.why.log_tail.size() <= log_room) {
      out[i].setLogTail(f.why.log_tail);
      log_room -= f.why.log_tail.size();
    }
    out[i].setAgoUs(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - f.shown_at).count()));
  }
}

msg<NodeState> leader_core::state(instant now) {
  return author_.write<NodeState>(current_, [&](NodeState::Builder b) {
    b.setGeneration(current_.value);
    switch (phase_) {
    case phase::idle:
    case phase::over:
      b.setPhase(NodeState::Phase::IDLE);
      break;
    case phase::draining:
    case phase::sweeping:
      b.setPhase(NodeState::Phase::DRAINING);
      break;
    case phase::ready:
      b.setPhase(NodeState::Phase::PREPARED);
      b.setStorePort(store_port_);
      b.setStoreHosted(store_open_);
      break;
    case phase::running:
    case phase::saving:
      b.setPhase(NodeState::Phase::RUNNING);
      break;
    case phase::failed:
      b.setPhase(NodeState::Phase::FAILED);
      write_failures(b.initFailures(static_cast<unsigned>(failures_.size())), now);
      break;
    case phase::finished:
      b.setPhase(NodeState::Phase::FINISHED);
      break;
    }
  });
}

std::string leader_core::in_words() const {
  const auto alive = std::count_if(workers_.begin(), workers_.end(),
                                   [](const worker& w) { return w.phase != worker_phase::ended; });
  switch (phase_) {
  case phase::idle:
    return "waiting for the master";
  case phase::draining:
    return fmt::format("ending {} worker(s)", alive);
  case phase::sweeping:
    return "killing what the workers left behind";
  case phase::ready:
    return fmt::format("ready for generation {}", current_.value);
  case phase::running:
    return fmt::format("generation {} runs with {} of {} workers alive", current_.value, alive,
                       workers_.size());
  case phase::failed:
    return fmt::format("generation {} failed here", current_.value);
  case phase::saving:
    return fmt::format("the workers of generation {} have ended; what they saved is on its way",
                       current_.value);
  case phase::finished:
    return fmt::format("generation {} finished here", current_.value);
  case phase::over:
    return "this node's part is over";
  }
  return {};
}

leader_core::effects leader_core::stand_by(instant, const msg<StandBy>& m) {
  effects out;
  if (!outcome_)
    out.push_back(note{{log::level::info,
                        "standing_by",
                        fmt::format("this node stands by, ready to take the place of one that is "
                                    "lost: {}",
                                    m.read()->getReason().cStr()),
                        {}}});
  return out;
}

} // namespace troupe::actors
