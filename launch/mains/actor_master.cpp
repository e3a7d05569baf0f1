#include "launch/mains/programs.hpp"
#include "launch/wiring/default_token.hpp"
#include "launch/wiring/hang_findings.hpp"
#include "launch/wiring/job_cluster.hpp"
#include "launch/wiring/job_files.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/master_journal.hpp"
#include "launch/wiring/master_run.hpp"
#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/master_witness.hpp"
#include "launch/wiring/metrics_service.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/run_directory.hpp"
#include "launch/wiring/standing_address.hpp"
#include "launch/wiring/topology_file.hpp"
#include "runtime/os/net/descriptor_limit.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-master";

/// Of links that begin from now on. The I/O thread asks.
class changing_timing {
 public:
  void set(const link::options& to) {
    const std::lock_guard lock(mutex_);
    now_ = to;
  }
  link::options get() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  link::options now_;
};

/// An operator must not take it for the end of training, which goes on without a master.
int exit_without_verdict(const master_program_options& o) {
  return o.cluster.elastic_job.empty() ? exit_failure : exit_try_again;
}

/// One master after the other, until the job is over: what the first node says of it is taken by
/// ending the tree that was begun without, before any node was let in, and beginning one with it.
class life {
 public:
  life(std::vector<std::string> arguments, const machine_facts& machine,
       const master_program_options& own, std::unique_ptr<os::logs> log, metrics_service& metrics)
      : arguments_(std::move(arguments)), machine_(machine), own_(own), log_(std::move(log)),
        metrics_(metrics), listen_(own.listen) {}

  int run() {
    const auto directory = run_directory::make({}, own_.rdzv_id, host_name());
    if (!directory)
      return could_not_begin(directory.error());
    run_directory::remove_abandoned();
    auto journal = open_master_journal(own_.journal, directory->journal(), owner_of(own_, machine_),
                                       {own_.cluster.account, machine_}, log_->sink());
    if (!journal)
      return could_not_begin(journal.error());
    auto taken = options_in(*journal->store);
    if (!taken)
      return could_not_begin(taken.error());
    taken_ = std::move(*taken);
    auto own = with_files(own_.of_job);
    if (!own)
      return report_error(program, own.error().what,
                          own_.cluster.elastic_job.empty() ? exit_usage : exit_try_again);
    own_words_ = std::move(*own);
    // The cluster that takes the pod has its reasons, and none of them is the end of the job, which
    // its owner ends by taking the nodes' pods.
    const signal_watch signals(io_, parse_signals(signals_by_default)->ending,
                               [this](int number) { hear(number); });
    std::optional<actors::recovery_core::verdict> verdict;
    while (!verdict) {
      auto one = one_master(*journal, *directory);
      if (const auto* code = std::get_if<int>(&one))
        return *code;
      if (const auto* v = std::get_if<actors::recovery_core::verdict>(&one))
        verdict = *v;
    }
    tell_linger(metrics_, program, log_->sink());
    log_.reset();
    metrics_.linger();
    directory->tidy_up();
    if (is_taken_)
      return exit_by_signal + SIGTERM;
    if (is_broken_)
      return exit_without_verdict(own_);
    if (verdict->success)
      return exit_success;
    return verdict->exit_code != 0 ? verdict->exit_code : exit_failure;
  }

 private:
  struct begins_anew {};

  int could_not_begin(const error& why) const {
    return report_error(program, why.what, exit_without_verdict(own_));
  }

  static std::string why_not(const parsed<master_program_options>& p) {
    const auto* wrong = std::get_if<refusal>(&p);
    return wrong ? wrong->what : "one of them only prints";
  }

  /// With what is known of the job now.
  result<master_program_options> options() const {
    if (!taken_)
      return own_;
    auto parsed = parse_master(arguments_, machine_, taken_->words);
    if (!std::holds_alternative<master_program_options>(parsed))
      return failure(errc::invalid, fmt::format("the job's options, as node {} was told them: {}",
                                                taken_->node, why_not(parsed)));
    auto o = std::get<master_program_options>(std::move(parsed));
    o.common = own_.common; // with the token that was found for it
    return o;
  }

  result<void> acceptable(const messages::job_words& words) const {
    const auto parsed = parse_master(arguments_, machine_, words);
    if (!std::holds_alternative<master_program_options>(parsed))
      return failure(errc::invalid, why_not(parsed));
    const auto applied = master_options_of(settings_of(std::get<master_program_options>(parsed)));
    if (!applied)
      return tl::make_unexpected(applied.error());
    return {};
  }

  void learn_from_nodes(const master_program_options& o, actors::membership_options& m) const {
    m.options.own = own_words_;
    if (taken_) {
      m.options.taken = taken_->words;
      m.options.taken_from = taken_->node;
      m.options.just_taken = begins_anew_;
    }
    m.options.acceptable = [this](const messages::job_words& words) { return acceptable(words); };
    // As many as its ElasticJob says, which may change, whatever a launcher was told in its pod; or
    // as the first node says.
    if (!o.cluster.elastic_job.empty() || !o.nodes_said)
      m.nodes_min = m.nodes_max = 0;
    m.any_name = !o.cluster.elastic_job.empty();
  }

  std::variant<int, begins_anew, actors::recovery_core::verdict>
  one_master(const master_journal& journal, const run_directory& directory) {
    const auto refused = [this](const error& why) { return could_not_begin(why); };
    auto known = options();
    if (!known)
      return refused(known.error());
    auto& o = *known;
    o.listen = listen_;
    // Two per node: a node that comes back may dial before its old link is noticed to be gone.
    if (auto raised = os::raise_descriptor_limit(2 * o.nodes_max + 64); !raised)
      return refused(raised.error());
    timing_->set(link_timing_of(o));
    if (!witness_)
      witness_ =
          master_witness::open(o, log_->sink(), [timing = timing_] { return timing->get(); });
    if (auto opened = open_address(o); !opened)
      return refused(opened.error());
    auto m = master_options_of(settings_of(o));
    if (!m)
      return refused(m.error());
    m->journal = journal.options;
    take_hang_options(o.hangs, directory.stacks(), log_->sink(), m->diagnosis);
    const auto cluster =
        cluster_of(o.cluster, machine_, o.rdzv_id, {o.nodes_min, o.nodes_max}, log_->sink());
    if (!cluster)
      return refused(cluster.error());
    actors::master_world world{transport_, journal.store,
                               topology_file::of(o.policy.topology, log_->sink()), *cluster};
    learn_from_nodes(o, m->membership);
    if (witness_)
      witness_->take_part(*m, world);
    auto master = master_run::start(engine_.system(), world, *m,
                                    until_lost(journal, metrics_.telling_cost(log_->sink())));
    if (!master)
      return refused(master.error().code == errc::refused
                         ? error{errc::refused, master.error().what +
                                                    " (a job has one master: if it is there "
                                                    "already, nodes find it without this one)"}
                         : master.error());
    tell_listening(o, (*master)->where());
    {
      const std::lock_guard lock(mutex_);
      master_ = master->get();
      obey(*master_);
    }
    const auto verdict = (*master)->farewell();
    is_broken_ = (*master)->is_broken();
    {
      const std::lock_guard lock(mutex_);
      master_ = nullptr;
    }
    auto said = (*master)->options_taken();
    if (!said || is_taken_)
      return verdict;
    begins_anew_ = true;
    taken_ = options_on_record{{}, std::move(*said)};
    if (auto recorded = options_in(*journal.store); recorded && *recorded)
      taken_ = **recorded;
    return begins_anew{};
  }

  /// One for all masters of this process.
  result<void> open_address(const master_program_options& o) {
    if (transport_)
      return {};
    auto opened = open_transport(io_, o.common, log_->sink(), link_timing_of(o), {},
                                 [timing = timing_] { return timing->get(); });
    if (!opened)
      return tl::make_unexpected(opened.error());
    transport_ = std::make_shared<standing_address>(std::move(*opened));
    return {};
  }

  void tell_listening(const master_program_options& o, const ports::endpoint& where) {
    if (listens_)
      return;
    listens_ = true;
    listen_.port = where.port; // nodes look for the next one there
    const auto awaited = !o.nodes_said ? "the first node, which says how many there are (--nnodes),"
                         : o.nodes_min == o.nodes_max
                             ? fmt::format("{} node(s)", o.nodes_min)
                             : fmt::format("{} to {} nodes", o.nodes_min, o.nodes_max);
    log_->sink()(program, {log::level::notice,
                           "listening",
                           fmt::format("job '{}': waiting for {} at {}", o.rdzv_id, awaited,
                                       ports::to_string(where)),
                           {{"endpoint", ports::to_string(where)}}});
  }

  /// A signal may come while no master is there; the next one obeys it.
  void hear(int number) {
    const std::lock_guard lock(mutex_);
    metrics_.let_go();
    signal_ = number;
    if (master_)
      obey(*master_);
  }

  void obey(master_run& master) {
    if (signal_ == 0)
      return;
    const auto reason =
        fmt::format("the master received {}", ports::to_string(ports::exit_status{true, signal_}));
    const bool outlived = !own_.cluster.elastic_job.empty();
    if (!outlived || signal_ != SIGTERM)
      return master.interrupt(reason);
    log_->sink()(program, {log::level::notice,
                           "master_taken",
                           reason + ": its pod is taken. Training goes on, and the next master "
                                    "takes up the journal",
                           {}});
    is_taken_ = true;
    master.give_way();
  }

  const std::vector<std::string> arguments_;
  const machine_facts& machine_;
  const master_program_options& own_;
  std::unique_ptr<os::logs> log_;
  metrics_service& metrics_;
  ports::endpoint listen_;
  bool listens_ = false;
  messages::job_words own_words_; ///< with the files that they name
  /// What a node says of the job; nothing yet, or no node says anything.
  std::optional<options_on_record> taken_;
  bool begins_anew_ = false; ///< with these
  std::mutex mutex_;
  master_run* master_ = nullptr; ///< the one that is there
  int signal_ = 0;               ///< of the user's, or the pod's end
  std::atomic<bool> is_taken_{false};
  bool is_broken_ = false; ///< its verdict is about itself, and not about training
  os::io_thread io_;
  const std::shared_ptr<changing_timing> timing_ = std::make_shared<changing_timing>();
  std::shared_ptr<ports::transport> transport_; ///< once it is needed
  std::unique_ptr<master_witness> witness_;     ///< once a check of the network is wanted
  // Behind all that its actors hold.
  sup::engine engine_{master_run::threads};
};

} // namespace

int troupe::launch::actor_master(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  const auto arguments = arguments_of(argc, argv);
  auto parsed = parse_master(arguments, machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  auto& options = std::get<master_program_options>(parsed);
  take_default_token(options.common, options.listen, machine);
  metrics_service metrics(options.metrics, {options.rdzv_id, {}});
  auto log = open_log(options.common, {options.rdzv_id, {}}, metrics.sink());
  if (!log)
    return report_error(program, log.error().what, exit_without_verdict(options));
  if (const auto served = metrics.serve((*log)->sink()); !served)
    return report_error(program, served.error().what, exit_without_verdict(options));
  leave(life(arguments, machine, options, std::move(*log), metrics).run());
}
