// What agent_core says: its messages, the workers' places, and its state in words.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/base/generations.hpp"

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

/// The port travels with Prepared, since the master can order no start before it can tell all nodes
/// where rank 0's store is.
void agent_core::say_prepared(effects& out) {
  out.push_back(report{author_
                           .write<Prepared>(current_,
                                            [&](auto b) {
                                              b.setNode(options_.node);
                                              b.setStorePort(store_port_);
                                              b.setStoreHosted(store_open_);
                                            })
                           .any()});
}

/// What a successor can learn nowhere else: the seat and the store's place. Which processes
/// live is in the keeper's own table, which cannot be out of date.
msg<Underway> agent_core::underway(const msg<Start>& m) {
  return author_.write<Underway>(current_, [&](Underway::Builder b) {
    auto start = m.read();
    write_seat(b.initSeat(), seat_, options_.node, options_.slots);
    b.setStoreAddress(start->getStoreAddress());
    b.setStorePort(start->getStorePort());
    b.setStoreHosted(start->getStoreHosted());
  });
}

/// Ranks come from the master and are not computed here: nodes may have different numbers of slots.
assignment agent_core::place_of(local_rank local, const msg<Start>& m) const {
  auto start = m.read();
  assignment a;
  a.which = current_;
  a.restart_count = seat_.restart_count;
  a.failed_at = failed_at_;
  a.local = local;
  a.rank = seat_.first_rank + local;
  a.local_world_size = options_.slots;
  a.world_size = seat_.world_size;
  const bool counts_roles = seat_.role_world_size != 0;
  a.role_rank = counts_roles ? seat_.first_role_rank + local : a.rank;
  a.role_world_size = counts_roles ? seat_.role_world_size : a.world_size;
  a.group_rank = seat_.group_rank;
  a.group_world_size = seat_.nodes;
  a.master_index = seat_.master_index;
  // As the master knows it, which is the address that the link comes from or the one the user gave:
  // one that the agent finds out by itself may be out of the others' reach.
  a.address = seat_.address;
  a.store_address = start->getStoreAddress().cStr();
  a.store_port = start->getStorePort();
  a.store_hosted = start->getStoreHosted();
  return a;
}

/// Without processes: at a first start there is none to adopt.
std::vector<worker_slot> agent_core::slots_of(const msg<Start>& m) const {
  std::vector<worker_slot> slots;
  for (local_rank r = 0; r < options_.slots; ++r)
    slots.push_back({place_of(r, m), std::nullopt});
  return slots;
}

/// All of them each time: a repeated Failed replaces what the master knows, so none is lost with a
/// link.
msg<Failed> agent_core::failures(instant now) {
  return author_.write<Failed>(current_, [&](auto b) {
    b.setNode(options_.node);
    write_failures(b.initFailures(static_cast<unsigned>(failures_.size())), now);
    b.setEnded(!up_);
  });
}

/// Everything that was of it is gone. Said to the master; nothing else here depends on it. Failures
/// go along only where they belong: a number that this node never started has none, whatever failed
/// here before it.
void agent_core::say_stopped(effects& out, instant now, generation which) {
  out.push_back(report{
      author_
          .write<Stopped>(which,
                          [&](auto b) {
                            b.setNode(options_.node);
                            if (which == started_)
                              write_failures(
                                  b.initFailures(static_cast<unsigned>(failures_.size())), now);
                          })
          .any()});
}

/// The generation that ran, unless it finished and there was no Stop for it or this node leaves the
/// job; and what the newest open Stop was about. Two answers where both are due, as a member of its
/// own waits for each generation. After Finished the master waits for none, and a Goodbye says as
/// much as a Stopped.
void agent_core::say_stopped_generations(effects& out, instant now) {
  const auto asked = std::exchange(stop_open_, generation{});
  if (std::exchange(says_stopped_, false) && !outcome_ && asked != started_)
    say_stopped(out, now, started_);
  if (asked != generation{})
    say_stopped(out, now, asked);
}

/// The room for tracebacks and logs is one for all. It goes to the first failures, which are the
/// likeliest root causes, and a node with a thousand workers still fits its hello into a frame.
void agent_core::write_failures(capnp::List<WorkerFailure>::Builder out, instant now) const {
  std::size_t room = limits::tracebacks_max, log_room = limits::log_tails_max;
  for (unsigned i = 0; i < failures_.size(); ++i) {
    const auto& f = failures_[i];
    auto said = f.end.read();
    auto r = said->getReport();
    out[i].setNode(options_.node);
    out[i].setHost(options_.host);
    out[i].setLocalRank(r.getLocalRank());
    out[i].setRank(seat_.first_rank + r.getLocalRank());
    out[i].setPid(r.getPid());
    out[i].setExitCode(r.getExitCode());
    const std::string how = f.hung.empty() ? r.getMessage().cStr() : f.hung;
    out[i].setMessage(how.substr(0, limits::failure_line_max));
    out[i].setHung(!f.hung.empty());
    out[i].setTraceback(last_part(r.getTraceback().cStr(), std::min(room, limits::traceback_max)));
    room -= out[i].getTraceback().size();
    out[i].setLogFile(r.getLogFile());
    out[i].setUnixTimeMs(r.getUnixTimeMs());
    out[i].setBeforeStart(r.getBeforeStart());
    out[i].setOutOfMemory(r.getOutOfMemory());
    out[i].setStopped(f.stopped);
    if (r.getLogTail().size() > 0 && r.getLogTail().size() <= log_room) {
      out[i].setLogTail(r.getLogTail());
      log_room -= r.getLogTail().size();
    }
    // An age and no time of day: the master subtracts it from the time of arrival, so no two clocks
    // are compared.
    out[i].setAgoUs(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - f.shown_at).count()));
  }
}

/// The hello says again whatever may have been lost with the last link, so each phase carries what
/// its own message carried. The master needs to be right about lost links only once, here.
msg<NodeState> agent_core::state(instant now) {
  return author_.write<NodeState>(current_, [&](NodeState::Builder b) {
    b.setGeneration(current_.value);
    switch (phase_) {
    case phase::idle:
    case phase::over:
      b.setPhase(NodeState::Phase::IDLE);
      break;
    case phase::draining:
    case phase::sweeping:
      // To the master both are one: something of the old generation may still live.
      b.setPhase(NodeState::Phase::DRAINING);
      break;
    case phase::ready:
      b.setPhase(NodeState::Phase::PREPARED);
      b.setStorePort(store_port_);
      b.setStoreHosted(store_open_);
      break;
    case phase::running:
    case phase::saving:
      // A node that saves has not finished. A master that took it for finished could end the job,
      // and with it itself, before the last step is complete.
      b.setPhase(NodeState::Phase::RUNNING);
      break;
    case phase::failed:
      b.setPhase(NodeState::Phase::FAILED);
      write_failures(b.initFailures(static_cast<unsigned>(failures_.size())), now);
      break;
    case phase::finished:
      b.setPhase(NodeState::Phase::FINISHED);
      b.setAsked(asking_ == asking::asked || asking_ == asking::begun);
      break;
    }
  });
}

std::string agent_core::in_words() const {
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
    return fmt::format("ready for generation {}", count_of(current_));
  case phase::running:
    return fmt::format("generation {} runs with {} of {} workers alive", count_of(current_), alive,
                       workers_.size());
  case phase::failed:
    return fmt::format("generation {} failed here", count_of(current_));
  case phase::saving:
    return fmt::format("the workers of generation {} have ended; what they saved is on its way",
                       count_of(current_));
  case phase::finished:
    return fmt::format("generation {} finished here", count_of(current_));
  case phase::over:
    return "this node's part is over";
  }
  return {};
}

} // namespace troupe::actors
