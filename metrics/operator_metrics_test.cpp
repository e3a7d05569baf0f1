#include "metrics/operator_metrics.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using troupe::metrics::operator_metrics;

namespace {

constexpr instant t0{1'000s};

log::event phase(const char* job, const char* phase) {
  return {
      log::level::notice, "job_phase", "", {{"job", job}, {"namespace", "n"}, {"phase", phase}}};
}

bool has(const operator_metrics& m, const std::string& line) {
  return m.text().find("\n" + line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("jobs are counted by their phase until they are gone") {
  operator_metrics m("1.2", t0);
  m.observe(phase("a", "Pending"));
  m.observe(phase("b", "Pending"));
  auto taken_up = phase("b", "Running");
  taken_up.name = "job_taken_up";
  m.observe(taken_up);
  m.observe(phase("a", "Running"));
  CHECK(has(m, "troupe_operator_jobs{phase=\"Running\"} 2"));
  CHECK(!has(m, "troupe_operator_jobs{phase=\"Pending\"} 0"));
  m.observe({log::level::info, "job_gone", "", {{"job", "b"}, {"namespace", "elsewhere"}}});
  m.observe({log::level::info, "job_gone", "", {{"job", "a"}, {"namespace", "n"}}});
  CHECK(has(m, "troupe_operator_jobs{phase=\"Running\"} 1"));
  CHECK(has(m, "troupe_events_total{level=\"notice\"} 4"));
}

TEST_CASE("which one leads, and what jobs wait for") {
  operator_metrics m("1.2", t0);
  CHECK(has(m, "troupe_operator_leads 0"));
  m.observe({log::level::notice, "leads", "", {}});
  for (int n = 0; n < 100; ++n)
    m.observe({log::level::warning, "job_blocked", "", {{"reason", "r" + std::to_string(n % 40)}}});
  CHECK(has(m, "troupe_operator_leads 1"));
  CHECK(has(m, "troupe_operator_jobs_blocked_total{reason=\"r0\"} 3"));
  CHECK(has(m, "troupe_operator_jobs_blocked_total{reason=\"other\"} 16"));
}

TEST_CASE("requests by their outcome; a watch lasts for minutes and is in no histogram") {
  operator_metrics m("1.2", t0);
  m.answered(t0, "GET", 200, 20ms);
  m.answered(t0, "GET", 0, 15s);
  m.answered(t0, "WATCH", 200, 240s);
  CHECK(has(m, "troupe_operator_api_requests_total{method=\"GET\",status=\"0\"} 1"));
  CHECK(has(m, "troupe_operator_api_requests_total{method=\"WATCH\",status=\"200\"} 1"));
  CHECK(has(m, "troupe_operator_api_request_seconds_count 2"));
  CHECK(has(m, "troupe_operator_api_request_seconds_bucket{le=\"0.025\"} 1"));
}

TEST_CASE("alive while it asks, ready while it is answered well") {
  operator_metrics m("1.2", t0);
  CHECK(m.is_alive(t0));
  CHECK(!m.is_ready(t0));
  m.answered(t0 + 1s, "GET", 403, 1ms);
  CHECK(!m.is_ready(t0 + 1s));
  m.answered(t0 + 2s, "GET", 200, 1ms);
  CHECK(m.is_ready(t0 + 31s));
  CHECK(!m.is_ready(t0 + 32s));
  // The API server is away: it goes on asking.
  for (auto at = t0 + 2s; at < t0 + 10min; at += 20s) {
    m.asked(at);
    m.answered(at + 15s, "GET", 0, 15s);
    CHECK(m.is_alive(at + 19s));
  }
  CHECK(!m.is_ready(t0 + 10min));
  CHECK(!m.is_alive(t0 + 12min));
}
