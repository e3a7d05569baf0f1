#include "launch/wiring/master_run.hpp"

#include "messages/kinds.hpp"
#include "runtime/sup/shell.hpp"

namespace troupe::launch {

namespace {

/// Enough for every child's own limit in actors/topology.cpp.
constexpr auto tree_end_within = 15s;

/// Until the tree is up its failure to start is the caller's to tell, in one line: what supervisors
/// say about it on the way is left out.
log::sink silent_about_failed_start(log::sink to, std::shared_ptr<std::atomic<bool>> up) {
  return
      [to = std::move(to), up = std::move(up)](const std::string& component, const log::event& e) {
        if (*up || e.severity < log::level::warning)
          to(component, e);
      };
}

} // namespace

result<std::unique_ptr<master_run>> master_run::start(caf::actor_system& system,
                                                      const actors::master_world& world,
                                                      const actors::master_options& options,
                                                      const log::sink& sink) {
  std::unique_ptr<master_run> run(new master_run(world));
  auto listening = std::make_shared<std::promise<result<ports::endpoint>>>();
  auto told = std::make_shared<std::atomic<bool>>(false);
  auto answer = listening->get_future();
  const auto tell = [listening, told](result<ports::endpoint> r) {
    if (!told->exchange(true))
      listening->set_value(std::move(r));
  };

  actors::master_events events;
  events.on_listening = [tell](const ports::endpoint& where) { tell(where); };
  events.on_verdict = [shared = run->shared_](const actors::recovery_core::verdict& v) {
    shared->conclude(v);
  };
  events.on_job_options = [shared = run->shared_](const messages::job_words& words) {
    shared->options = words;
    shared->give_way();
  };
  events.on_everyone_left = [shared = run->shared_] { shared->leave(); };
  const auto on_end = [tell, shared = run->shared_](const sup::ending& end) {
    const auto why = end ? end->what : std::string("the master was stopped");
    tell(failure(errc::refused, why));
    shared->give_up(why);
  };
  run->root_ = sup::spawn_root(system, actors::master_tree(world, options, run->at_, events),
                               silent_about_failed_start(sink, told), on_end);

  auto where = answer.get();
  if (!where)
    return tl::make_unexpected(where.error());
  run->where_ = *where;
  return run;
}

master_run::~master_run() {
  shutdown();
}

actors::recovery_core::verdict master_run::farewell() {
  const auto v = verdict().get();
  everyone_left().wait();
  shutdown();
  // Nothing is decided of the job, which another master goes on with.
  if (shared_->gives_way || shared_->is_broken)
    return v;
  record_end();
  world_.cluster->end();
  return v;
}

/// Without it the next master tells the verdict again before a new run can begin; nothing else
/// depends on it.
void master_run::record_end() {
  messages::author author("master", world_.journal->opened_as());
  const auto done = std::make_shared<std::promise<void>>();
  world_.journal->append(author.write<messages::FarewellEnded>({}, [](auto) {}).any(),
                         [done](const result<std::uint64_t>&) { done->set_value(); });
  done->get_future().wait_for(limits::request_within);
}

void master_run::interrupt(const std::string& reason) {
  if (!shared_->interrupted.exchange(true)) {
    sup::post(at_.recovery, messages::local<messages::Abandon>(
                                "launcher", [&reason](auto b) { b.setReason(reason); }));
    return;
  }
  // Without a verdict the first one is still to be recorded, and the journal waits for its disk.
  shared_->conclude({false, reason});
  shared_->leave();
}

void master_run::give_way() {
  shared_->give_way();
}

void master_run::shutdown() {
  if (root_ && !root_->ended())
    root_->shutdown(tree_end_within);
}

} // namespace troupe::launch
