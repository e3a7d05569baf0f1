#include "metrics/job_metrics.hpp"

#include "metrics/event_fields.hpp"

#include <algorithm>

namespace troupe::metrics {

namespace {

constexpr auto usual_class = "other";
/// Classes are words of ours; a field that is none of them cannot grow the page without end.
constexpr std::size_t classes_max = 32;

std::optional<duration> milliseconds(const log::event& e, const char* name) {
  const auto found = field<double>(e, name);
  if (!found)
    return std::nullopt;
  return std::chrono::duration_cast<duration>(std::chrono::duration<double, std::milli>(*found));
}

double seconds(duration d) {
  return std::chrono::duration<double>(d).count();
}

bool begins_with(const std::string& text, const char* what) {
  return text.rfind(what, 0) == 0;
}

} // namespace

job_metrics::job_metrics(const origin& from, instant began)
    : process_(from.version), account_(began) {
  if (!from.job.empty())
    origin_.emplace_back("job_id", from.job);
  if (!from.node.empty())
    origin_.emplace_back("node", from.node);
}

const std::map<std::string, job_metrics::handler>& job_metrics::handlers() {
  using m = job_metrics;
  static const std::map<std::string, handler> all{
      {"generation_sealed", &m::sealed},
      {"training_started", &m::started},
      {"training_again", &m::started},
      {"first_step", &m::first_step},
      {"restarting", &m::restarting},
      {"node_excluded", &m::excluded},
      {"hang", &m::hang},
      {"hang_over", &m::hang_over},
      {"step_settled", &m::step_settled},
      {"check_over", &m::checked},
      {"job_concluded", &m::concluded},
      {"step_complete", &m::step_complete},
      {"link_established", &m::linked},
      {"link_restored", &m::linked},
      {"link_missing", &m::unlinked},
      {"journal_waits", &m::journal_waits},
      {"journal_goes_on", &m::journal_goes_on},
      // Counted only.
      {"node_lost", nullptr},
      {"node_joined", nullptr},
      {"step_given_up", nullptr},
      {"step_not_complete", nullptr},
      {"step_not_copied", nullptr},
      {"rank_slow", nullptr},
      {"node_faulty", nullptr},
      {"worker_failed", nullptr},
      {"workers_started", nullptr},
      {"workers_adopted", nullptr},
  };
  return all;
}

void job_metrics::observe(instant now, const std::string& component, const log::event& e) {
  process_.observe(e);
  master_here_ = master_here_ || begins_with(component, "master");
  node_here_ = node_here_ || begins_with(component, "node_supervisor");
  const auto found = handlers().find(e.name);
  if (found == handlers().end())
    return;
  ++seen_[e.name];
  if (found->second != nullptr)
    (this->*found->second)(now, e);
}

std::uint64_t job_metrics::seen(const char* event) const {
  const auto found = seen_.find(event);
  return found == seen_.end() ? 0 : found->second;
}

// ---- what events mean ----

void job_metrics::sealed(instant, const log::event& e) {
  world_size_ = field<std::int64_t>(e, "world_size").value_or(0);
  nodes_ = field<std::int64_t>(e, "nodes").value_or(0);
  if (const auto took = milliseconds(e, "prepare_ms"))
    phases_["prepare"].observe(seconds(*took));
}

void job_metrics::started(instant now, const log::event& e) {
  if (const auto took = milliseconds(e, "start_ms"))
    phases_["start"].observe(seconds(*took));
  preparing_ = account_.now() == spent::starting ? spent::starting : spent::recovering;
  account_.become(now, spent::training);
  running_since_ = now;
  stood_before_ = account_.in(now, spent::standing);
  const auto after = milliseconds(e, "since_failure_ms");
  running_after_failure_ = after.value_or(duration::zero());
  if (after) {
    phases_["running"].observe(seconds(*after));
    // The failure was before it was judged.
    const auto counted = recovering_since_ ? now - *recovering_since_ : duration::zero();
    account_.was_rather(now, spent::recovering, *after - counted);
  }
  recovering_since_.reset();
}

void job_metrics::first_step(instant now, const log::event& e) {
  const auto after = milliseconds(e, "since_failure_ms");
  if (after)
    phases_["first_step"].observe(seconds(*after));
  knows_first_steps_ = true;
  if (!running_since_)
    return;
  prepared(now, after && running_after_failure_ > duration::zero() ? *after - running_after_failure_
                                                                   : now - *running_since_);
}

/// The world that runs has prepared for so long, less what is counted as a standstill already.
void job_metrics::prepared(instant now, duration took) {
  account_.was_rather(now, preparing_, took - (account_.in(now, spent::standing) - stood_before_));
  running_since_.reset();
}

void job_metrics::recover(instant now, const std::string& restart_class) {
  const bool known = restarts_.count(restart_class) != 0 || restarts_.size() < classes_max;
  ++restarts_[known ? restart_class : usual_class];
  world_size_ = nodes_ = 0;
  // A world that has failed before its first step has trained nothing. Where no first step was ever
  // told, a script's steps may not be seen at all.
  if (running_since_ && knows_first_steps_)
    prepared(now, now - *running_since_);
  running_since_.reset();
  account_.become(now, spent::recovering);
  recovering_since_ = now;
}

void job_metrics::restarting(instant now, const log::event& e) {
  recover(now, field<std::string>(e, "exit_class").value_or(usual_class));
}

void job_metrics::excluded(instant now, const log::event& e) {
  recover(now, field<std::string>(e, "exit_class").value_or(usual_class));
}

void job_metrics::hang(instant now, const log::event& e) {
  if (account_.now() != spent::training)
    return;
  account_.was_rather(now, spent::standing, milliseconds(e, "stood_ms").value_or(duration::zero()));
  account_.become(now, spent::standing);
}

void job_metrics::hang_over(instant now, const log::event&) {
  if (account_.now() == spent::standing)
    account_.become(now, spent::training);
}

void job_metrics::step_settled(instant now, const log::event& e) {
  settled_step_ = field<std::int64_t>(e, "step");
  settled_at_ = now;
}

void job_metrics::step_complete(instant, const log::event& e) {
  saved_step_ = field<std::int64_t>(e, "step");
}

void job_metrics::checked(instant, const log::event& e) {
  check_seconds_ = field<double>(e, "seconds");
}

void job_metrics::concluded(instant now, const log::event& e) {
  success_ = field<bool>(e, "success").value_or(false);
  concluded_at_ = now;
  world_size_ = nodes_ = 0;
  account_.become(now, spent::concluded);
}

// ---- the page ----

std::string job_metrics::text(instant now, const std::vector<diag::page_reading>& pages) const {
  exposition to(origin_);
  process_.write(to);
  if (master_here_) {
    write_job(to, now);
    write_recovery(to, now);
    write_checkpoints(to, now);
  }
  if (node_here_)
    write_node(to, pages);
  return to.text();
}

void job_metrics::write_job(exposition& to, instant now) const {
  const auto count = [&](const char* name, const char* help, const char* event) {
    to.counter(name, help, static_cast<double>(seen(event)));
  };
  count("troupe_generations_total", "Generations that were formed.", "generation_sealed");
  to.gauge("troupe_world_size", "Workers of the generation that runs; 0: none does.",
           static_cast<double>(world_size_));
  to.gauge("troupe_nodes", "Nodes of the generation that runs; 0: none does.",
           static_cast<double>(nodes_));
  count("troupe_nodes_joined_total", "Nodes that came.", "node_joined");
  count("troupe_nodes_lost_total", "Nodes that were lost.", "node_lost");
  count("troupe_nodes_excluded_total",
        "Nodes that were left out for their hardware, or as their restarts were used up.",
        "node_excluded");
  count("troupe_nodes_faulty_total", "Times that checks found nodes to be broken.", "node_faulty");
  count("troupe_hangs_total", "Standstills of training that were diagnosed.", "hang");
  count("troupe_slow_ranks_total", "Ranks that were found to be slower than the others.",
        "rank_slow");
  if (check_seconds_)
    to.gauge("troupe_network_check_seconds", "How long the last check of nodes took.",
             *check_seconds_);
  to.gauge("troupe_journal_waits", "1 while the journal's disk takes no decision.",
           journal_waits_ ? 1 : 0);
  to.counter("troupe_time_seconds_total", "What the time since the master's start went to.");
  for (std::size_t n = 0; n < ways_to_spend; ++n) {
    const auto kind = static_cast<spent>(n);
    to.sample(seconds(account_.in(now, kind)), {{"state", to_string(kind)}});
  }
  to.gauge("troupe_goodput_ratio",
           "Time in training in proportion to all time until the job's end.",
           account_.goodput(now));
  if (success_)
    to.gauge("troupe_job_success", "Of a job that is over: 1 if it has succeeded, else 0.",
             *success_ ? 1 : 0);
}

void job_metrics::write_recovery(exposition& to, instant) const {
  to.counter("troupe_restarts_total", "Times that the workers were started once more, by reason.");
  for (const auto& [which, times] : restarts_)
    to.sample(static_cast<double>(times), {{"class", which}});
  to.histogram("troupe_recovery_seconds",
               "prepare: until nodes are ready; start: from then until workers run; running and "
               "first_step: from a failure until workers run, and until the first step.");
  for (const auto& [phase, durations] : phases_)
    to.sample(durations, {{"phase", phase}});
}

void job_metrics::write_checkpoints(exposition& to, instant now) const {
  to.counter("troupe_checkpoint_steps_total", "Steps that the master settled, by result.");
  to.sample(static_cast<double>(seen("step_settled")), {{"result", "complete"}});
  to.sample(static_cast<double>(seen("step_given_up")), {{"result", "given_up"}});
  if (settled_step_)
    to.gauge("troupe_checkpoint_last_step", "The last step that was completed.",
             static_cast<double>(*settled_step_));
  if (settled_at_)
    to.gauge("troupe_checkpoint_age_seconds", "Time since a step was completed.",
             seconds(std::max(now - *settled_at_, duration::zero())));
}

void job_metrics::write_node(exposition& to, const std::vector<diag::page_reading>& pages) const {
  to.gauge("troupe_master_linked", "1 while this node has a link to its master.", linked_ ? 1 : 0);
  const auto count = [&](const char* name, const char* help, std::uint64_t times) {
    to.counter(name, help, static_cast<double>(times));
  };
  count("troupe_node_starts_total", "Times that this node's workers were started.",
        seen("workers_started"));
  count("troupe_node_worker_failures_total", "Workers of this node that failed.",
        seen("worker_failed"));
  to.counter("troupe_node_saves_total", "Steps of checkpoints that this node wrote, by result.");
  to.sample(static_cast<double>(seen("step_complete")), {{"result", "complete"}});
  to.sample(static_cast<double>(seen("step_not_complete")), {{"result", "not_complete"}});
  count("troupe_node_copies_failed_total", "Steps of a rank that no other node holds.",
        seen("step_not_copied"));
  if (saved_step_)
    to.gauge("troupe_node_last_saved_step", "The last step that this node wrote completely.",
             static_cast<double>(*saved_step_));
  if (pages.empty())
    return;
  to.counter("troupe_steps_total", "Training steps that the process of a local rank has made.");
  for (const auto& each : pages)
    if (each.page)
      to.sample(static_cast<double>(each.page->steps_made),
                {{"local_rank", std::to_string(each.local_rank)}});
  to.gauge("troupe_step", "The step that the process of a local rank is in, as it counts them.");
  for (const auto& each : pages)
    if (each.page)
      to.sample(static_cast<double>(each.page->step),
                {{"local_rank", std::to_string(each.local_rank)}});
}

} // namespace troupe::metrics
