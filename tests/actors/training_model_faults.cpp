// What goes wrong in a training_model, and what looks at its ranks find.

#include "tests/actors/training_model.hpp"

#include <utility>

namespace troupe::actors::testing {

namespace {

std::uint64_t nanoseconds_of(duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
}

} // namespace

// ---- what goes wrong ----

void training_model::freeze(std::uint32_t r, activity looks) {
  ranks_[r].frozen = true;
  ranks_[r].looks = std::move(looks);
  began = now;
}

void training_model::thaw(std::uint32_t r) {
  auto& k = ranks_[r];
  k.frozen = false;
  k.looks = {};
  if (std::exchange(k.held, false))
    push(now, event::of_rank, r, k.life);
}

void training_model::block_input(std::uint32_t r, activity looks) {
  ranks_[r].input_never = std::move(looks);
}
void training_model::mistake_kind(std::uint32_t r) {
  ranks_[r].wrong_kind = true;
}
void training_model::skip_collectives(std::uint32_t r) {
  ranks_[r].skips = true;
  began = now;
}
void training_model::swap_groups(std::uint32_t r) {
  ranks_[r].swaps = true;
  began = now;
}
void training_model::cut(std::uint32_t) {
  for (auto& c : collectives_)
    c.broken = true;
  began = now;
}
void training_model::unanswered(std::uint32_t r, std::vector<std::string> peers) {
  ranks_[r].peers = std::move(peers);
}
void training_model::end(std::uint32_t r) {
  auto& k = ranks_[r];
  freeze(r, {});
  k.gone = true;
  const auto& n = *nodes_[k.node];
  for (auto each = n.first; each < n.first + n.count; ++each)
    if (!ranks_[each].gone)
      return;
  tell_no_processes(*nodes_[k.node], true);
}
void training_model::drain_node(std::uint32_t n) {
  tell_no_processes(*nodes_[n], false);
}
void training_model::tell_no_processes(node& n, bool ended_well) {
  perform(n, n.core.watched(
                 now, planner_.write<Watched>(generation{generation_}, [&](Watched::Builder b) {
                   b.setEndedWell(ended_well);
                 })));
}
void training_model::freeze_inside(std::uint32_t r, activity looks) {
  // All have entered, and the last bytes do not come.
  for (auto& c : collectives_)
    c.broken = true;
  at(shape_.usual * 2, [this, r, looks] { freeze(r, looks); });
}

diag::process_look training_model::look(std::uint32_t r) {
  auto& k = ranks_[r];
  const auto looks = machine ? machine(r, k.looks) : k.looks;
  const duration since = now - k.look_cpu_at;
  const auto part = [&](double cores) {
    return duration(static_cast<duration::rep>(cores * static_cast<double>(since.count())));
  };
  k.look_cpu_at = now;
  // The kernel counts a wait for a processor when it ends.
  k.cpu += part(looks.cpu * looks.had * (1 - looks.taken));
  k.not_over += part(looks.cpu * (1 - looks.taken));
  if (looks.had > 0)
    k.wanted += std::exchange(k.not_over, {});
  k.beside_cpu += part(looks.beside_cpu);
  if (looks.had > 0)
    k.delayed += part(looks.delayed);
  if (looks.io)
    k.io += nanoseconds_of(since) / 10; // 100 MB/s
  if (looks.beside_io)
    k.beside_io += nanoseconds_of(since) / 100;
  diag::process_look l;
  l.local_rank = r - nodes_[k.node]->first;
  l.pid = static_cast<std::int32_t>(k.page.pid);
  l.state = looks.state;
  l.cpu_time = k.cpu + k.beside_cpu;
  l.io_bytes = k.io + k.beside_io;
  l.traced = looks.traced;
  l.ends = looks.ends;
  l.delayed = k.wanted - k.cpu + k.delayed;
  const auto here = std::hash<std::string>()(looks.place);
  diag::thread_look main{l.pid, k.cpu, looks.stacks_move ? ns() : here, k.wanted};
  main.position = looks.line_moves ? ns() : 1;
  main.io_bytes = k.io;
  main.waits = looks.cpu == 0 ? looks.awaits : diag::awaited::nothing;
  main.joins = looks.joins;
  main.ready = looks.state == 'R';
  const auto helper = l.pid + 1'000'000;
  l.threads = {main, {helper, k.beside_cpu, ns(), k.beside_cpu, ns()}};
  l.threads[1].role = looks.beside;
  l.threads[1].waits = looks.beside_awaits;
  if (looks.delayed > 0)
    l.ready[helper + 1'000'000] = 0s;
  l.place = looks.place;
  l.children = looks.children;
  l.slow_peers = k.peers;
  for (auto& c : l.children)
    if (looks.children_move)
      c.io_bytes = ns();
  if (looks.starts_programs) {
    diag::child_look program;
    program.pid = static_cast<std::int32_t>(ns() / 1'000'000 % 1'000'000'000);
    program.started_by = helper;
    l.children.push_back(program);
  }
  return l;
}

} // namespace troupe::actors::testing
