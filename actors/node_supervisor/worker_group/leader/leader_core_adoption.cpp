// How leader_core goes on where a supervisor that crashed had been.

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

using namespace messages;

void leader_core::take_place(const msg<Prepare>& m) {
  world_ = m;
  auto order = m.read();
  for (auto member : order->getWorld().getMembers()) {
    if (options_.node != member.getNode().cStr())
      continue;
    group_rank_ = member.getGroupRank();
    first_rank_ = member.getFirstRank();
  }
}

/// Those that have ended meanwhile are adopted as well, and their ends follow as if they came now.
leader_core::effects leader_core::adopt(instant, const msg<Underway>& m,
                                        const std::vector<ports::survivor>& left) {
  effects out;
  const auto which = m.envelope().about;
  if (which == generation{} || phase_ != phase::idle || current_ != generation{})
    return out;
  auto kept = m.read();
  current_ = started_ = which;
  take_place(author_.write<Prepare>(which, [&](auto b) { b.setWorld(kept->getWorld()); }));
  const auto start = author_.write<Start>(which, [&](auto b) {
    b.setStoreAddress(kept->getStoreAddress());
    b.setStorePort(kept->getStorePort());
    b.setStoreHosted(kept->getStoreHosted());
  });
  phase_ = phase::running;
  dirty_ = remembered_ = true;
  store_port_ = kept->getStorePort();
  store_open_ = group_rank_ == 0 && kept->getStoreHosted();
  if (store_open_)
    out.push_back(adopt_store{store_port_});

  workers_.assign(options_.slots, worker{});
  for (const auto& process : left) {
    if (process.label >= workers_.size())
      continue;
    const auto local = static_cast<local_rank>(process.label);
    workers_[local].phase = worker_phase::alive;
    workers_[local].pid = process.pid;
    out.push_back(adopt_worker{place_of(local, start), process});
  }
  start_missing(out, start);
  out.push_back(
      note{{log::level::story,
            "workers_adopted",
            fmt::format("the node supervisor was restarted; generation {} goes on with {} "
                        "worker{}",
                        which.value, left.size(), left.size() == 1 ? "" : "s"),
            {{"generation", static_cast<std::int64_t>(which.value)},
             {"workers", static_cast<std::int64_t>(left.size())}}}});
  return out;
}

/// The predecessor did not get to them; one may be running of whom it could not tell.
void leader_core::start_missing(effects& out, const msg<Start>& start) {
  bool swept = false;
  for (local_rank r = 0; r < workers_.size(); ++r) {
    if (workers_[r].phase != worker_phase::starting)
      continue;
    if (!std::exchange(swept, true))
      begin_sweep(out);
    out.push_back(start_worker{place_of(r, start)});
  }
}

/// From here on a successor would find a generation that is being ended: it ends it, and says so.
void leader_core::forget_underway(effects& out) {
  if (std::exchange(remembered_, false))
    out.push_back(remember{author_.write<Underway>({}, [](auto) {})});
}

} // namespace troupe::actors
