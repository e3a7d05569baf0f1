#include "launch/supervisor_life.hpp"

#include "ckpt/writer/image_writer.hpp"
#include "launch/conclusion.hpp"
#include "launch/image_copies.hpp"
#include "launch/job_policy.hpp"
#include "launch/master_run.hpp"
#include "launch/narrative.hpp"
#include "launch/node_run.hpp"
#include "launch/outcome_file.hpp"
#include "launch/placement.hpp"
#include "launch/program.hpp"
#include "launch/training_program.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/console/console_relay.hpp"
#include "runtime/os/keeper/kept_messages.hpp"
#include "runtime/os/keeper/kept_process_host.hpp"
#include "runtime/os/keeper/kept_store_host.hpp"
#include "runtime/os/process/local_services.hpp"
#include "runtime/os/store/asio_store_host.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace troupe::launch {

namespace {

constexpr auto program = "actor-launcher";
/// One for the actors, one so that a process being started does not hold them up.
constexpr unsigned engine_threads = 2;

result<actors::master_options> master_options_of(const launcher_options& o,
                                                 const ports::endpoint& where) {
  actors::master_options m;
  m.membership.job = o.rdzv_id;
  m.membership.nodes_min = o.nodes_min;
  m.membership.nodes_max = o.nodes_max;
  m.rendezvous.nodes_min = o.nodes_min;
  m.rendezvous.nodes_max = o.nodes_max;
  m.rendezvous.join_timeout = o.rendezvous.settings.join_timeout.value_or(limits::join_timeout);
  m.rendezvous.last_call = o.rendezvous.settings.last_call_timeout;
  m.rendezvous.prepare_within = o.shutdown_timeout + limits::prepare_slack;
  m.recovery.max_restarts = o.max_restarts;
  m.recovery.settle = limits::verdict_settles;
  m.gateway.listen_on = where;
  if (auto applied = apply_policy(o.policy, o.processes_per_node, m); !applied)
    return tl::make_unexpected(applied.error());
  return m;
}

/// --local-addr, which may be in brackets; empty if it was not given.
std::string own_address_said(const launcher_options& o) {
  return parse_host(o.local_addr).value_or(o.local_addr);
}

/// Where other nodes reach this one.
std::string own_address(const launcher_options& o, const ports::endpoint& master) {
  const auto said = own_address_said(o);
  return said.empty() ? address_towards(master.host) : said;
}

/// As for torchrun: then rank 0's worker hosts the store.
bool leaves_store_to_worker(const machine_facts& machine) {
  const auto found = machine.environment.find("TORCH_DISABLE_SHARE_RDZV_TCP_STORE");
  return found != machine.environment.end() && found->second == "1";
}

actors::node_options node_options_of(const launcher_options& o, const machine_facts& machine,
                                     const placement& where, const node_name& name,
                                     std::uint64_t seed, actors::leader::program p) {
  const auto& master = where.master;
  actors::node_options n;
  n.uplink.job = o.rdzv_id;
  n.uplink.node = name;
  n.uplink.address = own_address(o, master);
  n.uplink.slots = o.processes_per_node;
  n.uplink.wanted_rank = o.rendezvous.node_rank;
  if (o.nodes_said) {
    n.uplink.nodes_min = o.nodes_min;
    n.uplink.nodes_max = o.nodes_max;
  }
  n.uplink.master = ports::to_string(master);
  n.uplink.connect_within = o.rendezvous.settings.read_timeout.value_or(limits::connect_within);
  n.leader.node = n.uplink.node;
  n.leader.host = host_name();
  n.leader.slots = o.processes_per_node;
  n.leader.stop_within = o.shutdown_timeout;
  n.leader.hosts_store = !leaves_store_to_worker(machine);
  n.leader.store_port = where.store_port;
  n.leader.save_at_breakpoint = o.policy.save_at_breakpoint;
  n.program = std::move(p);
  n.master = master;
  n.seed = seed;
  return n;
}

/// Where the master is, for a successor: no other one may be made, and where nobody asked for a
/// port the nodes know the one that was picked.
constexpr std::size_t place_of_master = os::first_place_of_others;
/// The port that this node's workers have told others.
constexpr std::size_t place_of_copies = place_of_master + 1;
constexpr char hosted_here = '+';
constexpr char hosted_elsewhere = '-';
static_assert(place_of_copies < limits::kept_places);

class life {
 public:
  life(const launch_facts& facts, os::keeper_client& keeper, std::unique_ptr<os::logs> log)
      : facts_(facts), options_(facts.options), machine_(facts.machine), keeper_(keeper),
        log_(std::move(log)) {}

  int run() {
    auto contract = facts_.contract;
    const auto open_files = os::raise_open_files();
    auto transport = open_transport(io_, options_.common, log_->sink(),
                                    options_.rendezvous.settings.lease, own_address_said(options_));
    if (!transport)
      return complain(program, transport.error().what, exit_failure);
    const std::shared_ptr<ports::process_host> processes = std::make_shared<os::kept_process_host>(
        io_, keeper_, os::process_host_options{open_files, log_->sink()});
    const auto stores = std::make_shared<os::kept_store_host>(io_, keeper_, log_->sink());
    const auto keeping = std::make_shared<os::kept_messages>(keeper_);

    auto where = place();
    if (const auto why = objection_to_store(where))
      return complain(program, *why, exit_failure);
    auto started = host_master(*transport, where);
    if (!started)
      return complain(program, started.error().what, exit_failure);
    const auto master = std::move(*started);
    if (master)
      where.master = master->where();
    remember(where.master, master != nullptr);

    contract.zone = zone_towards(own_address(options_, where.master), where.master.host);
    auto copies = give_copies(contract, own_address(options_, where.master));
    output_ = std::make_shared<worker_output>(contract.output, console_, facts_.progress);
    const auto node_options = node_options_of(
        options_, machine_, where, facts_.node, facts_.seed,
        heard_by(outcome_, contract.output, program_of(contract, output_, processes)));
    const auto images =
        ckpt::image_writer::open(contract.checkpoint_memory, facts_.node,
                                 copies ? copies->giver() : ckpt::image_writer::giver{});
    if (!images)
      return complain(program, images.error().what, exit_failure);
    auto node = node_run::start(engine_.system(), {*transport, processes, stores, keeping, *images},
                                node_options, master ? log_->sink() : told_by_node(log_->sink()));
    keeper_.on_user_signal([&](int number) { hear(number, *node, master.get()); });
    const int code = conclude(node_options.uplink.node, *node, master.get(), *processes);
    copies.reset(); // the writer of images, which goes after it, hears what was given up
    // What it captured goes now; the I/O thread may be about to call it.
    keeper_.on_user_signal([](int) {});
    os::call_on(io_, [] {});
    return code;
  }

 private:
  /// Where the master is, or was when this node's supervisor was last alive.
  placement place() const {
    auto where = place_master(options_);
    const auto kept = keeper_.kept(place_of_master);
    if (!kept || kept->empty())
      return where;
    where.host =
        kept->front() == hosted_here ? placement::hosting::here : placement::hosting::elsewhere;
    const auto colon = kept->rfind(' ');
    where.master.host = kept->substr(1, colon - 1);
    where.master.port = static_cast<std::uint16_t>(std::stoul(kept->substr(colon + 1)));
    return where;
  }

  void remember(const ports::endpoint& master, bool here) {
    (void)keeper_.keep(
        place_of_master,
        fmt::format("{}{} {}", here ? hosted_here : hosted_elsewhere, master.host, master.port));
  }

  /// In a job of several nodes, if this one can have a part in it; `contract` is told where.
  /// Without it training goes on, and whoever wants copies is told that there are none.
  std::unique_ptr<image_copies> give_copies(worker_contract& contract,
                                            const std::string& own) const {
    if (contract.memory_for_others.empty())
      return nullptr;
    const auto kept = keeper_.kept(place_of_copies);
    const auto port = kept && !kept->empty() ? std::stoul(*kept) : 0;
    auto opened = image_copies::open(options_, facts_.node, {own, static_cast<std::uint16_t>(port)},
                                     contract.memory_for_others, log_->sink());
    if (!opened) {
      log_->sink()(program,
                   {log::level::warning,
                    "no_copies",
                    "this node takes no copies of other nodes' images: " + opened.error().what,
                    {}});
      return nullptr;
    }
    const auto where = (*opened)->where();
    contract.copies_address = ports::to_string(where);
    (void)keeper_.keep(place_of_copies, std::to_string(where.port));
    return std::move(*opened);
  }

  /// A busy port will not become free by trying again. Later it is our own store that is there.
  std::optional<std::string> objection_to_store(const placement& where) const {
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
    node.interrupt(number);
    if (master)
      master->abandon(fmt::format("the launcher of node {} received {}", facts_.node,
                                  ports::to_string(ports::exit_status{true, number})));
  }

  /// The master, if this launcher is to run it; nothing if somebody else does. To take the address
  /// is the only way to know whether it is ours and free, also for launchers that start at the same
  /// moment: if it is refused, dialling it is what tells the user more.
  result<std::unique_ptr<master_run>>
  host_master(const std::shared_ptr<ports::transport>& transport, const placement& where) {
    if (where.host == placement::hosting::elsewhere)
      return std::unique_ptr<master_run>{};
    auto started = start_master(transport, where.master);
    if (!started && where.host == placement::hosting::if_able &&
        started.error().code == errc::refused)
      return std::unique_ptr<master_run>{};
    return started;
  }

  result<std::unique_ptr<master_run>>
  start_master(const std::shared_ptr<ports::transport>& transport, const ports::endpoint& where) {
    auto journal = open_journal(options_.journal, facts_.directory);
    if (!journal)
      return tl::make_unexpected(journal.error());
    const auto options = master_options_of(options_, where);
    if (!options)
      return tl::make_unexpected(options.error());
    return master_run::start(engine_.system(), {transport, std::move(*journal)}, *options,
                             log_->sink());
  }

  int conclude(const node_name& name, node_run& node, master_run* master,
               ports::process_host& files) {
    const auto outcome = node.outcome().get();
    // The others hear the verdict from this master before it goes.
    if (master) {
      master->verdict().wait();
      // And their last saves are complete.
      master->everyone_left().wait_for(limits::farewell_within +
                                       (options_.policy.save_at_breakpoint
                                            ? duration(limits::last_saves_within)
                                            : duration::zero()));
    }
    node.shutdown();
    if (master)
      master->shutdown();
    const auto unshown = output_->drain();
    log_.reset();
    if (unshown)
      complain(program, *unshown, exit_failure);
    if (outcome_->wanted())
      if (auto written = outcome_->write(name, outcome); !written)
        complain(program, written.error().what, exit_failure);
    if (outcome.success)
      return exit_success;
    if (!outcome_->wanted()) {
      // The master's own launcher has just told why in its narrative.
      if (!master || !outcome.verdict)
        complain(program, outcome.reason, exit_failure);
      if (outcome.verdict || outcome.failures)
        say(conclude_failure(options_.command.front(), name, outcome, machine_.environment, files));
    }
    const int own = outcome.verdict ? outcome.verdict->read()->getExitCode() : 0;
    if (own != 0)
      return own;
    return options_.propagate_exit_code && outcome.verdict ? exit_code_of(*outcome.verdict)
                                                           : exit_failure;
  }

  const launch_facts& facts_;
  const launcher_options& options_;
  const machine_facts& machine_;
  os::keeper_client& keeper_;
  std::unique_ptr<os::logs> log_;
  const std::array<os::console_target, 2> targets_ = os::own_console();
  const std::shared_ptr<os::file_relay> console_ =
      std::make_shared<os::file_relay>(targets_[0], targets_[1]);
  std::shared_ptr<worker_output> output_;
  const std::shared_ptr<outcome_file> outcome_ =
      std::make_shared<outcome_file>(options_.outcome_file);
  os::io_thread io_;
  sup::engine engine_{engine_threads};
};

void tell_beginning(const launcher_options& o, const log::sink& to) {
  for (const auto& remark : o.remarks)
    to(program, {log::level::warning, "remark", remark, {}});
  if (const auto& r = o.rendezvous; !r.standalone)
    to(program,
       {log::level::info,
        "endpoint",
        fmt::format("the job meets at {} ({}){}", ports::to_string(r.endpoint), r.endpoint_from,
                    r.node_rank ? fmt::format("; node rank {}", *r.node_rank) : std::string()),
        {{"endpoint", ports::to_string(r.endpoint)}, {"from", r.endpoint_from}}});
}

} // namespace

int live(const launch_facts& facts, os::keeper_client& keeper) {
  auto log = open_log(facts.options.common);
  if (!log)
    return complain(program, log.error().what, exit_failure);
  if (keeper.earlier_lives() == 0)
    tell_beginning(facts.options, (*log)->sink());
  else
    (*log)->sink()(program, {log::level::warning,
                             "supervisor_restarted",
                             "the node supervisor crashed and was restarted",
                             {{"earlier_lives", std::int64_t{keeper.earlier_lives()}}}});
  return life(facts, keeper, std::move(*log)).run();
}

void serve_store(const launch_facts& facts, const os::packet& order, const os::unique_fd& answer) {
  const auto log = open_log(facts.options.common);
  os::store_host_options options;
  if (log)
    options.log = (*log)->sink();
  os::asio_store_host host(options);
  for (const auto store = os::open_as_ordered(order, answer, host); store;)
    ::pause();
}

} // namespace troupe::launch
