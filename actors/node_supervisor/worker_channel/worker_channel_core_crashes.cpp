#include "actors/node_supervisor/worker_channel/worker_channel_core.hpp"

#include <utility>

namespace troupe::actors {

using messages::msg;

void worker_channel_core::take_crash(effects& out, instant now, link from, const peer& p,
                                     const msg<messages::FatalSignal>& m) {
  if (p.rank && ranks_.count(p.pid) + ranks_.count(p.session) != 0)
    return add(out, crashes_.hit(now, from, p.pid, *p.rank, m));
  // It is of a generation that is being ended, or this actor does not know it yet.
  fatal_signals_core::effects let_go;
  let_go.push_back(fatal_signals_core::go_on{from, m.envelope().correlation});
  add(out, std::move(let_go));
}

worker_channel_core::effects
worker_channel_core::crashes_read(std::uint64_t number,
                                  const std::vector<diag::crash_report>& reports) {
  effects out;
  add(out, crashes_.read(number, reports));
  return out;
}

void worker_channel_core::add(effects& out, fatal_signals_core::effects&& of_crashes) {
  for (auto& e : of_crashes) {
    if (const auto* g = std::get_if<fatal_signals_core::go_on>(&e))
      out.push_back(
          send{g->to, messages::with_correlation(author_.write<messages::GoOn>(about_, [](auto) {}),
                                                 g->correlation)
                          .any()});
    else if (auto* n = std::get_if<fatal_signals_core::note>(&e))
      out.push_back(note{std::move(n->event)});
    else
      out.push_back(std::get<read_stacks>(std::move(e)));
  }
}

} // namespace troupe::actors
