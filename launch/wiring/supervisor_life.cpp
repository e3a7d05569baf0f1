#include "launch/wiring/supervisor_life.hpp"

#include "actors/node_supervisor/training/agent/agent.hpp"
#include "actors/node_supervisor/uplink/identity.hpp"
#include "launch/keeper/kept_messages.hpp"
#include "launch/keeper/kept_process_host.hpp"
#include "launch/keeper/kept_store_host.hpp"
#include "launch/options/journal_place.hpp"
#include "launch/wiring/command_digest.hpp"
#include "launch/wiring/conclusion.hpp"
#include "launch/wiring/devices.hpp"
#include "launch/wiring/endpoint_name.hpp"
#include "launch/wiring/hang_findings.hpp"
#include "launch/wiring/job_cluster.hpp"
#include "launch/wiring/job_files.hpp"
#include "launch/wiring/last_checkpoint.hpp"
#include "launch/wiring/master_address.hpp"
#include "launch/wiring/master_journal.hpp"
#include "launch/wiring/master_run.hpp"
#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/metrics_service.hpp"
#include "launch/wiring/narrative.hpp"
#include "launch/wiring/node_bulk.hpp"
#include "launch/wiring/node_options.hpp"
#include "launch/wiring/node_run.hpp"
#include "launch/wiring/outcome_file.hpp"
#include "launch/wiring/placement.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/snapshot_copies.hpp"
#include "launch/wiring/topology_file.hpp"
#include "launch/wiring/worker_channel.hpp"
#include "launch/wiring/worker_hooks.hpp"
#include "launch/worker/training_program.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/checkpoint/snapshot_writer.hpp"
#include "runtime/os/console/console_relay.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/probe/child_probe_host.hpp"
#include "runtime/os/probe/torch_devices.hpp"
#include "runtime/os/process/local_services.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"
#include "runtime/os/watch/process_watch.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <mutex>
#include <utility>

#include <unistd.h>

namespace troupe::launch {

namespace {

constexpr auto program = "actor-launcher";
/// Nothing that a node's actors do waits for a disk or a network.
constexpr unsigned engine_threads = 1;

// A node whose supervisor stands still may be replaced like one that is cut off; its workers train
// beside those that replace them for no longer than a cut-off node's do where no other node tells
// it so.
static_assert(limits::supervisor_stopped_within <= limits::isolated_within);

constexpr ports::kept_slot<messages::MasterPlace> master_slot{2};

constexpr bool all_differ(std::initializer_list<unsigned> slots) {
  unsigned taken = 0;
  for (const unsigned slot : slots) {
    if (slot >= limits::kept_slots || (taken & 1u << slot) != 0)
      return false;
    taken |= 1u << slot;
  }
  return true;
}
static_assert(all_differ({actors::agent::underway_slot.number, actors::uplink::identity_slot.number,
                          master_slot.number, node_bulk::place_slot.number}));

/// Where the user finds what workers write; empty if no files were asked for.
std::string directory_asked_for(const launch_facts& facts) {
  const auto& streams = facts.options.streams;
  const bool asked = !streams.log_dir.empty() || streams.redirects.any() || streams.tee.any();
  return asked ? facts.directory.for_workers() : std::string{};
}

class life {
 public:
  life(const launch_facts& facts, keeper_client& keeper, std::unique_ptr<os::logs> log,
       metrics_service& metrics)
      : facts_(facts), options_(facts.options), machine_(facts.machine), keeper_(keeper),
        log_(std::move(log)), metrics_(metrics) {}

  int run() {
    auto contract = facts_.contract;
    auto transport = open_transport(io_, options_.common, log_->sink(), link_timing_of(options_),
                                    own_address_said(options_));
    if (!transport)
      return cannot_go_on(transport.error());
    const std::shared_ptr<ports::process_host> processes = std::make_shared<kept_process_host>(
        io_, slow_, keeper_, os::process_host_options{facts_.open_files, log_->sink()});
    const auto stores = std::make_shared<kept_store_host>(io_, keeper_, log_->sink());

    auto where = place();
    if (const auto why = store_validation_error(where))
      return cannot_go_on({errc::unavailable, *why});
    if (const auto named = await_endpoint(where); !named)
      return cannot_go_on(named.error());
    auto of_job = with_files(options_.of_job);
    if (!of_job && keeper_.earlier_lives() == 0)
      return cannot_go_on(of_job.error());
    const auto said = of_job.value_or(options_.of_job);
    auto started = host_master(*transport, where, said);
    if (!started)
      return cannot_go_on(started.error());
    const auto master = std::move(*started);
    if (master)
      where.master = master->where();
    remember(where.master, master != nullptr);
    if (keeper_.earlier_lives() == 0 && options_.nodes_max > 1)
      for (const auto& line :
           lines_at_start(options_, where.master, master != nullptr, host_name()))
        log_->sink()(program, line);

    contract.zone = zone_towards(own_address_said(options_), where.master.host);
    open_bulk(where.master);
    auto copies = give_copies(contract);
    output_ = std::make_shared<worker_output>(contract.output, console_, facts_.progress);
    auto node_options =
        node_options_of(options_, machine_, where, facts_.node, facts_.seed,
                        heard_by(outcome_, contract.output,
                                 program_of(contract, output_, processes, log_->sink())));
    node_options.uplink.bulk_port = bulk_links()->where().port;
    node_options.uplink.of_job = said;
    const auto memory = ckpt::snapshot_watch::open(contract.checkpoint_memory);
    if (!memory)
      return cannot_go_on(memory.error());
    const auto snapshots = std::make_shared<ckpt::snapshot_writer>(*memory, facts_.node);
    const auto copier =
        copies ? copies->copier_of(*memory) : std::make_shared<ckpt::snapshot_copier>(*memory);
    const auto watch = os::process_watch::open(contract.progress_memory, own_program(),
                                               {facts_.directory.stacks(), options_.hangs.dumps});
    if (!watch)
      return cannot_go_on(watch.error());
    metrics_.show_steps(*watch, options_.processes_per_node);
    const auto workers =
        listen_to_workers(io_, slow_, facts_.channel,
                          {options_.processes_per_node, log_->sink(), facts_.directory.stacks()});
    if (!workers)
      return cannot_go_on(workers.error());
    if (const auto how = probed_by_torch(options_))
      ::setenv(os::torch_devices_variable, how->c_str(), 0);
    const auto probes = os::child_probe_host::open(own_program(), facts_.node);
    const auto told = keeper_.earlier_lives() == 0
                          ? told_once_linked(log_->sink(), program,
                                             first_lines(options_, today(),
                                                         directory_asked_for(facts_), where.master))
                          : log_->sink();
    auto node =
        node_run::start(engine_.system(),
                        {*transport, processes, stores, keeping_, snapshots, copier, *watch,
                         *workers, bulk_links(), probes},
                        node_options, checkpoint_.heard_in(master ? told : told_by_node(told)));
    if (keeper_.earlier_lives() > 0)
      log_->sink()(program, {log::level::warning,
                             "supervisor_restarted",
                             "the node supervisor crashed and was restarted",
                             {{"earlier_lives", std::int64_t{keeper_.earlier_lives()}}}});
    keeper_.on_user_signal([&](int number) { hear(number, *node, master.get()); });
    const int code = conclude(node_options.uplink.node, *node, master.get(), *processes);
    copies.reset(); // the copier, which goes after it, hears what was given up
    keeper_.on_user_signal([this](int) { metrics_.let_go(); });
    metrics_.linger();
    // What it captured goes now; the I/O thread may be about to call it.
    keeper_.on_user_signal([](int) {});
    os::call_on(slow_, [] {});
    os::call_on(io_, [] {});
    return code;
  }

 private:
  /// In the first life the user has to change something, and the job ends. A successor starts from
  /// what has worked before: what it lacks (a file, room on a disk, descriptors) may be back at the
  /// next try, and the workers train on meanwhile.
  int cannot_go_on(const error& why) {
    if (keeper_.earlier_lives() == 0)
      return report_error(program, why.what, why.code == errc::invalid ? exit_usage : exit_failure);
    keeper_.failed(why.what);
    leave(exit_failure);
  }

  /// A tree that gave up is to the keeper what a crash is: this life ends, with the master that may
  /// be in it, and another one begins. To wait for the end of the job would be to wait for a node
  /// that never comes.
  [[noreturn]] void crash(const std::string& why) {
    log_.reset();
    keeper_.failed(why);
    leave(exit_failure);
  }

  /// Where the master is, or was when this node's supervisor was last alive.
  placement place() const {
    auto where = place_master(options_);
    const auto kept = keeping_->kept(master_slot);
    if (!kept)
      return where;
    auto last = kept.read();
    where.host = last->getHostedHere() ? placement::hosting::here : placement::hosting::elsewhere;
    where.master = {last->getHost().cStr(), last->getPort()};
    return where;
  }

  void remember(const ports::endpoint& master, bool here) {
    keeping_->keep(master_slot, messages::local<messages::MasterPlace>(program, [&](auto b) {
                     b.setHost(master.host);
                     b.setPort(master.port);
                     b.setHostedHere(here);
                   }));
  }

  /// In a job that has other nodes, or may have. Without bulk links training goes on, and what
  /// needs them says so.
  void open_bulk(const ports::endpoint& master) {
    if (!options_.may_have_others())
      return;
    auto opened = node_bulk::open(options_, facts_.node, master, *keeping_, log_->sink());
    if (opened)
      bulk_ = std::move(*opened);
    else
      say_no_copies(opened.error());
  }

  std::shared_ptr<ports::bulk_links> bulk_links() const {
    if (bulk_)
      return bulk_->links();
    return std::make_shared<ports::no_bulk_links>();
  }

  /// If this node can have a part in it; `contract` is told where. Else a worker that wants copies
  /// is told that there are none.
  std::unique_ptr<snapshot_copies> give_copies(worker_contract& contract) const {
    if (!bulk_ || contract.memory_for_others.empty())
      return nullptr;
    auto opened = snapshot_copies::open(bulk_->links(), facts_.node, contract.memory_for_others,
                                        log_->sink());
    if (!opened) {
      say_no_copies(opened.error());
      return nullptr;
    }
    contract.copies_port = bulk_->links()->where().port;
    return std::move(*opened);
  }

  void say_no_copies(const error& why) const {
    log_->sink()(program, {log::level::warning,
                           "no_copies",
                           "this node takes no copies of other nodes' images: " + why.what,
                           {}});
  }

  /// A busy port will not become free by trying again. Later it is our own store that is there.
  std::optional<std::string> store_validation_error(const placement& where) const {
    if (where.store_port == 0 || keeper_.earlier_lives() > 0)
      return std::nullopt;
    os::asio_store_host trial;
    const auto taken =
        trial.open({ports::store_reach::this_machine, where.master.host, where.store_port});
    return taken ? std::nullopt : std::optional(taken.error().what);
  }

  void hear(int number, node_run& node, master_run* master) {
    const auto& ending = options_.signals.ending;
    if (std::find(ending.begin(), ending.end(), number) == ending.end())
      return node.pass_on(number);
    metrics_.let_go();
    node.interrupt(number, master != nullptr);
    if (master)
      master->interrupt(fmt::format("the launcher of node {} received {}", facts_.node,
                                    ports::to_string(ports::exit_status{true, number})));
  }

  /// Whether the address is ours decides where the master runs, so the name must resolve first. A
  /// supervisor that was restarted knows that, and its workers need it at once.
  result<void> await_endpoint(const placement& where) {
    if (where.host == placement::hosting::elsewhere || keeper_.earlier_lives() > 0 ||
        look_up(where.master.host).empty())
      return {};
    std::mutex mutex;
    std::condition_variable stop;
    bool stopped = false;
    keeper_.on_user_signal([&](int number) {
      const auto& ending = options_.signals.ending;
      const std::lock_guard lock(mutex);
      stopped |= std::find(ending.begin(), ending.end(), number) != ending.end();
      stop.notify_all();
    });
    name_wait by;
    by.now = [] { return std::chrono::steady_clock::now(); };
    by.pause = [&](duration d) {
      std::unique_lock lock(mutex);
      return !stop.wait_for(lock, d, [&stopped] { return stopped; });
    };
    by.log = log_->sink();
    auto named =
        await_name(where.master.host,
                   options_.rendezvous.settings.read_timeout.value_or(limits::connect_within), by);
    // Until the node is there, signals are kept for it again.
    keeper_.on_user_signal(nullptr);
    os::call_on(io_, [] {});
    return stopped ? failure(errc::closed, "stopped before it was known where the master runs")
                   : named;
  }

  /// Nothing: a master that is there is another's. A file is locked; a ConfigMap goes to the newest
  /// that opens it, so the address is held.
  result<std::optional<master_journal>> take_journal(ports::transport& transport,
                                                     const ports::endpoint& master, bool if_able) {
    const bool holds = if_able && config_map_of(options_.journal);
    if (holds && keeper_.earlier_lives() > 0)
      await_free_address(transport, master);
    const auto held = holds ? hold_address(transport, master) : nullptr;
    if (holds && !held)
      return std::nullopt;
    auto journal = open_master_journal(options_.journal, facts_.directory.journal(),
                                       owner_of(options_, facts_.seed),
                                       {options_.cluster.account, machine_}, log_->sink());
    const bool may_be_anothers = if_able && !held;
    if (!journal && may_be_anothers && !address_is_free(transport, master))
      return std::nullopt;
    if (journal && may_be_anothers && !options_.journal.empty())
      await_free_address(transport, master);
    return journal.map([](auto& j) { return std::optional(std::move(j)); });
  }

  /// The master, if this launcher is to run it; nothing if another process does. Only taking the
  /// address tells whether it is free; if it is refused, dialling it tells the user more.
  result<std::unique_ptr<master_run>>
  host_master(const std::shared_ptr<ports::transport>& transport, const placement& where,
              const messages::job_words& said) {
    if (where.host == placement::hosting::elsewhere)
      return std::unique_ptr<master_run>{};
    const bool if_able = where.host == placement::hosting::if_able;
    auto options = master_options_of(settings_of(options_, where.master));
    if (!options)
      return tl::make_unexpected(options.error());
    auto taken = take_journal(*transport, where.master, if_able);
    if (!taken)
      return tl::make_unexpected(taken.error());
    if (!*taken)
      return std::unique_ptr<master_run>{}; // the master that is there may well have that journal
    options->journal = (*taken)->options;
    options->membership.options.own = said;
    options->recovery.beside = facts_.node;
    const auto cluster = cluster_of(options_.cluster, machine_, options_.rdzv_id,
                                    {options_.nodes_min, options_.nodes_max}, log_->sink());
    if (!cluster)
      return tl::make_unexpected(cluster.error());
    take_hang_options(options_.hangs, facts_.directory.stacks(), log_->sink(), options->diagnosis);
    masters_engine_.emplace(master_run::threads);
    const actors::master_world world{transport, (*taken)->store,
                                     topology_file::of(options_.policy.topology, log_->sink()),
                                     *cluster};
    auto started = master_run::start(masters_engine_->system(), world, *options,
                                     until_lost(**taken, metrics_.telling_cost(log_->sink())));
    if (!started && if_able && started.error().code == errc::refused)
      return std::unique_ptr<master_run>{};
    return started;
  }

  int conclude(const node_name& name, node_run& node, master_run* master,
               ports::process_host& files) {
    const auto outcome = node.outcome().get();
    if (node.gave_up())
      crash(outcome.reason);
    // The others hear the verdict from this master, and their last saves are complete, before it
    // goes.
    if (master)
      master->everyone_left().wait();
    node.shutdown();
    if (master)
      (void)master->farewell();
    const bool ran = outcome.success || outcome.verdict || outcome.signal != 0;
    if (ran)
      log_->sink()(program, last_line({outcome.success, outcome.signal,
                                       std::chrono::steady_clock::now() - facts_.started,
                                       outcome_->restarts(), directory_asked_for(facts_),
                                       checkpoint_.in_words()}));
    tell_linger(metrics_, program, log_->sink());
    const auto unshown = output_->drain();
    log_.reset();
    if (unshown)
      report_error(program, *unshown, exit_failure);
    if (outcome_->wanted())
      if (auto written = outcome_->write(name, outcome); !written)
        report_error(program, written.error().what, exit_failure);
    if (outcome.success)
      return exit_success;
    if (!outcome_->wanted()) {
      // The master's own launcher has just told why in its narrative, and a user who has sent a
      // signal knows.
      if (outcome.signal == 0 && (!master || !outcome.verdict))
        report_error(program, outcome.reason, exit_failure);
      if (outcome.verdict || outcome.failures)
        say(conclude_failure(options_.command.front(), name, outcome, checkpoint_.in_words(),
                             machine_.environment, files));
    }
    if (outcome.signal != 0)
      return exit_by_signal + outcome.signal;
    const int own = outcome.verdict ? outcome.verdict->read()->getExitCode() : 0;
    if (own != 0)
      return own;
    return options_.propagate_exit_code && outcome.verdict ? exit_code_of(*outcome.verdict)
                                                           : exit_failure;
  }

  const launch_facts& facts_;
  const launcher_options& options_;
  const machine_facts& machine_;
  keeper_client& keeper_;
  const std::shared_ptr<ports::keeping> keeping_ = std::make_shared<kept_messages>(keeper_);
  std::unique_ptr<os::logs> log_;
  metrics_service& metrics_;
  const std::array<os::console_target, 2> targets_ = os::own_console();
  const std::shared_ptr<os::file_relay> console_ =
      std::make_shared<os::file_relay>(targets_[0], targets_[1]);
  std::shared_ptr<worker_output> output_;
  const last_checkpoint checkpoint_;
  const std::shared_ptr<outcome_file> outcome_ =
      std::make_shared<outcome_file>(options_.outcome_file);
  os::io_thread io_;
  /// What may wait for a disk: log files, programs, the workers' store.
  os::io_thread slow_{"troupe-slow"};
  std::unique_ptr<node_bulk> bulk_; ///< nothing: no other node can reach this one
  sup::engine engine_{engine_threads};
  /// The master has one of its own, so that neither it nor the node holds up the other.
  std::optional<sup::engine> masters_engine_;
};

} // namespace

int live(const launch_facts& facts, keeper_client& keeper) {
  metrics_service metrics(facts.options.metrics, origin_of(facts));
  auto log = open_log(facts.options.common, origin_of(facts), metrics.sink());
  if (!log)
    return report_error(program, log.error().what, exit_failure);
  // A successor's training does not end because another program has the port now.
  if (const auto served = metrics.serve((*log)->sink()); !served && keeper.earlier_lives() == 0)
    return report_error(program, served.error().what, exit_failure);
  if (keeper.earlier_lives() == 0)
    for (const auto& line : remarks_on(facts.options))
      (*log)->sink()(program, line);
  return life(facts, keeper, std::move(*log), metrics).run();
}

} // namespace troupe::launch
