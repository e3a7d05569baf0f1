// How agent_core goes on where a supervisor that crashed had been.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

using namespace messages;

/// Those that have ended meanwhile are adopted as well, and their ends follow as if they came now.
/// The phase is `running` at once: the master is to notice nothing but a link that was closed, and
/// the next hello says where this node stands.
agent_core::effects agent_core::adopt(instant now, const msg<Underway>& m,
                                      const std::vector<ports::survivor>& left) {
  effects out;
  const auto which = m.envelope().about;
  // Generation 0 is what a predecessor leaves that had begun to end its workers. They are nothing
  // to be adopted, but what the first sweep is for.
  TROUPE_RARE_IF(which == generation{}, "agent: the supervisor crashed while workers were ended");
  if (which == generation{} || phase_ != phase::idle || current_ != generation{})
    return checked(std::move(out));
  auto kept = m.read();
  current_ = started_ = which;
  next_seat_ = seat_ = seat_in(kept->getSeat());
  const auto start = author_.write<Start>(which, [&](auto b) {
    b.setStoreAddress(kept->getStoreAddress());
    b.setStorePort(kept->getStorePort());
    b.setStoreHosted(kept->getStoreHosted());
  });
  phase_.become(phase::running);
  up_ = dirty_ = remembered_ = says_stopped_ = true;
  store_port_ = kept->getStorePort();
  // The store is a process of its own and has lived on, with all that its clients wrote.
  store_open_ = seat_.group_rank == 0 && kept->getStoreHosted();
  if (store_open_)
    out.push_back(adopt_store{store_port_});
  take_slots(out, now, slots_of(start), left);
  out.push_back(
      note{{log::level::notice,
            "workers_adopted",
            fmt::format("the node supervisor was restarted; generation {} goes on with {} "
                        "worker{}",
                        count_of(which), left.size(), left.size() == 1 ? "" : "s"),
            {{"generation", static_cast<std::int64_t>(which.value)},
             {"workers", static_cast<std::int64_t>(left.size())}}}});
  return checked(std::move(out));
}

/// Each survivor goes back to its slot. The predecessor did not get to the other slots, or did and
/// could not tell: a process that is not known is swept before another one is started there.
void agent_core::take_slots(effects& out, instant now, std::vector<worker_slot> slots,
                            const std::vector<ports::survivor>& left) {
  workers_.assign(slots.size(), worker{});
  for (const auto& process : left) {
    if (process.label >= slots.size())
      continue;
    slots[process.label].process = process;
    workers_[process.label].phase = worker_phase::alive;
    workers_[process.label].pid = process.pid;
  }
  // The sweep is asked for before the start. A start waits until a sweep is over, so an unknown
  // process of that rank is gone before the new one begins.
  if (any_worker(worker_phase::starting))
    begin_sweep(out, now);
  out.push_back(start_generation{current_, std::move(slots)});
  if (!any_worker(worker_phase::starting))
    say_watched(out);
}

/// From here on a successor would find a generation that is being ended: it ends it, and says so.
/// Forgetting always comes before ending: a handover that is gone too early costs a restart, one
/// that is gone too late would have the job count on ranks that are on their way out.
void agent_core::forget_underway(effects& out) {
  if (std::exchange(remembered_, false))
    out.push_back(remember{author_.write<Underway>({}, [](auto) {})});
}

} // namespace troupe::actors
