#include "metrics/operator_metrics.hpp"

#include "metrics/event_fields.hpp"

#include <fmt/format.h>

#include <chrono>

namespace troupe::metrics {

namespace {

/// Reasons are words of ours, and some of the cluster's: they cannot grow the page without end.
constexpr std::size_t reasons_max = 32;
/// Five methods, with the statuses that a server has for them.
constexpr std::size_t outcomes_max = 256;

std::string text_field(const log::event& e, const char* name) {
  return field<std::string>(e, name).value_or("");
}

/// Adds one, under `other` where there are too many kinds already.
template<class Key>
void count(std::map<Key, std::uint64_t>& in, const Key& key, std::size_t most, const Key& other) {
  ++in[in.size() < most || in.count(key) > 0 ? key : other];
}

} // namespace

operator_metrics::operator_metrics(std::string version, instant began)
    : process_(std::move(version)), asked_at_(began), heard_at_(began - useless_after) {}

void operator_metrics::observe(const log::event& e) {
  process_.observe(e);
  if (e.name == "leads")
    leads_ = true;
  else if (e.name == "job_blocked")
    count<std::string>(blocked_, text_field(e, "reason"), reasons_max, "other");
  else if (e.name == "job_phase" || e.name == "job_taken_up" || e.name == "job_gone") {
    const auto job = text_field(e, "namespace") + "/" + text_field(e, "job");
    if (e.name == "job_gone")
      phases_.erase(job);
    else if (phases_.size() < jobs_max || phases_.count(job) > 0)
      phases_[job] = text_field(e, "phase");
  }
}

void operator_metrics::asked(instant now) {
  asked_at_ = now;
}

void operator_metrics::answered(instant now, const std::string& method, unsigned status,
                                duration took) {
  // A watch was answered when it began: its end says nothing.
  if (status / 100 == 2 && method != "WATCH")
    heard_at_ = now;
  count(requests_, {method, status}, outcomes_max, std::make_pair(std::string("other"), 0u));
  if (method != "WATCH")
    took_.observe(std::chrono::duration<double>(took).count());
}

std::string operator_metrics::text() const {
  exposition to({});
  process_.write(to);
  to.gauge("troupe_operator_leads", "Whether this operator holds the lease, and so acts (1).",
           leads_ ? 1 : 0);
  std::map<std::string, std::uint64_t> jobs;
  for (const auto& [job, phase] : phases_)
    ++jobs[phase];
  to.gauge("troupe_operator_jobs", "ElasticJobs that the leader knows, by their phase.");
  for (const auto& [phase, number] : jobs)
    to.sample(static_cast<double>(number), {{"phase", phase}});
  to.counter("troupe_operator_jobs_blocked_total",
             "Times that an ElasticJob could not go on, by reason.");
  for (const auto& [reason, number] : blocked_)
    to.sample(static_cast<double>(number), {{"reason", reason}});
  to.counter("troupe_operator_api_requests_total",
             "Requests to the API server that are over, by method and status (0: no answer).");
  for (const auto& [outcome, number] : requests_)
    to.sample(static_cast<double>(number),
              {{"method", outcome.first}, {"status", fmt::format("{}", outcome.second)}});
  to.histogram("troupe_operator_api_request_seconds",
               "How long requests to the API server took; watches are not among them.");
  to.sample(took_);
  return to.text();
}

} // namespace troupe::metrics
