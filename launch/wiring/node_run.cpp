#include "launch/wiring/node_run.hpp"

#include "runtime/sup/shell.hpp"

namespace troupe::launch {

namespace {

/// Enough for every child's own limit in actors/topology.cpp.
constexpr auto node_end_within = 15s;

} // namespace

std::unique_ptr<node_run> node_run::start(caf::actor_system& system,
                                          const actors::node_world& world,
                                          const actors::node_options& options,
                                          const log::sink& sink) {
  std::unique_ptr<node_run> run(new node_run);
  const actors::node_events events{
      [shared = run->shared_](const actors::node_outcome& o) { shared->conclude(o); }};
  const auto on_end = [shared = run->shared_](const sup::ending& end) {
    shared->gave_up = end && !shared->known;
    shared->conclude(
        {false,
         "the node supervisor ended: " + (end ? end->what : std::string("it was stopped")),
         {}});
  };
  run->root_ =
      sup::spawn_root(system, actors::node_tree(world, options, run->at_, events), sink, on_end);
  return run;
}

node_run::~node_run() {
  shutdown();
}

void node_run::interrupt(int signal, bool ends_job) {
  sup::post(at_.agent, messages::local<messages::Interrupt>("launcher", [signal, ends_job](auto b) {
              b.setSignal(signal);
              b.setEndsJob(ends_job);
            }));
}

void node_run::pass_on(int signal) {
  sup::post(at_.agent, messages::local<messages::WorkerSignal>(
                           "launcher", [signal](auto b) { b.setNumber(signal); }));
}

void node_run::shutdown() {
  if (root_ && !root_->ended())
    root_->shutdown(node_end_within);
}

} // namespace troupe::launch
