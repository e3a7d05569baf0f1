#include "metrics/job_metrics.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::metrics;

namespace {

constexpr instant t0{};

struct metered {
  job_metrics m{{"words", "node0", "1.2.3"}, t0};

  void master(instant at, const char* name, decltype(log::event::fields) fields = {}) {
    m.observe(at, "master/recovery", {log::level::notice, name, "…", std::move(fields)});
  }
  void node(instant at, const char* name, decltype(log::event::fields) fields = {}) {
    m.observe(at, "node_supervisor/training/agent",
              {log::level::info, name, "…", std::move(fields)});
  }
  /// The value behind "name{labels of this sample}"; "-" if there is no such sample.
  std::string value(instant at, const std::string& name, const std::string& more = "",
                    const std::vector<diag::page_reading>& pages = {}) const {
    const auto text = m.text(at, pages);
    const auto begins =
        "\n" + name + "{job_id=\"words\",node=\"node0\"" + (more.empty() ? "" : "," + more) + "} ";
    const auto found = text.find(begins);
    if (found == std::string::npos)
      return "-";
    const auto from = found + begins.size();
    return text.substr(from, text.find('\n', from) - from);
  }
};

} // namespace

TEST_CASE("a world, a failure, and the next world") {
  metered j;
  j.master(t0 + 4s, "generation_sealed",
           {{"nodes", std::int64_t{2}}, {"world_size", std::int64_t{16}}, {"prepare_ms", 12.5}});
  j.master(t0 + 5s, "training_started", {{"start_ms", 1000.0}});
  CHECK(j.value(t0 + 6s, "troupe_generations_total") == "1");
  CHECK(j.value(t0 + 6s, "troupe_world_size") == "16");
  CHECK(j.value(t0 + 6s, "troupe_nodes") == "2");
  CHECK(j.value(t0 + 6s, "troupe_recovery_seconds_sum", "phase=\"prepare\"") == "0.0125");
  CHECK(j.value(t0 + 6s, "troupe_time_seconds_total", "state=\"starting\"") == "5");

  // The failure was at 100 s; it was judged when its generation had stopped.
  j.master(t0 + 102s, "restarting", {{"exit_class", std::string("killed")}});
  CHECK(j.value(t0 + 102s, "troupe_restarts_total", "class=\"killed\"") == "1");
  CHECK(j.value(t0 + 102s, "troupe_world_size") == "0");
  j.master(t0 + 103s, "training_again", {{"start_ms", 500.0}, {"since_failure_ms", 3000.0}});
  CHECK(j.value(t0 + 103s, "troupe_recovery_seconds_count", "phase=\"running\"") == "1");
  CHECK(j.value(t0 + 103s, "troupe_recovery_seconds_sum", "phase=\"running\"") == "3");
  CHECK(j.value(t0 + 103s, "troupe_time_seconds_total", "state=\"recovering\"") == "3");
  // Loading the state took until 110 s.
  j.master(t0 + 110s, "first_step", {{"since_failure_ms", 10000.0}});
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"recovering\"") == "10");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"training\"") == "185");
  CHECK(j.value(t0 + 200s, "troupe_goodput_ratio") == "0.925");
  CHECK(j.value(t0 + 200s, "troupe_job_success") == "-");
  j.master(t0 + 200s, "job_concluded", {{"success", true}});
  CHECK(j.value(t0 + 300s, "troupe_job_success") == "1");
  CHECK(j.value(t0 + 300s, "troupe_goodput_ratio") == "0.925");
}

TEST_CASE("a program that prepares before its first step does not train") {
  metered j;
  j.master(t0 + 1s, "training_started", {{"start_ms", 100.0}});
  j.master(t0 + 21s, "first_step");
  CHECK(j.value(t0 + 100s, "troupe_time_seconds_total", "state=\"starting\"") == "21");
  j.master(t0 + 100s, "restarting", {{"exit_class", std::string("planned")}});
  j.master(t0 + 101s, "training_started", {{"start_ms", 100.0}});
  j.master(t0 + 111s, "first_step");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"starting\"") == "21");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"recovering\"") == "11");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"training\"") == "168");
}

TEST_CASE("a world that never tells its first step trains from its start") {
  metered j;
  j.master(t0 + 1s, "training_started");
  j.master(t0 + 100s, "restarting");
  CHECK(j.value(t0 + 100s, "troupe_time_seconds_total", "state=\"training\"") == "99");
}

TEST_CASE("a standstill counts from where it began") {
  metered j;
  j.master(t0, "training_started");
  j.master(t0 + 60s, "hang", {{"stood_ms", 20000.0}});
  j.master(t0 + 62s, "hang", {{"stood_ms", 22000.0}}); // corrected
  CHECK(j.value(t0 + 70s, "troupe_time_seconds_total", "state=\"standing\"") == "30");
  j.master(t0 + 70s, "hang_over");
  CHECK(j.value(t0 + 100s, "troupe_time_seconds_total", "state=\"standing\"") == "30");
  CHECK(j.value(t0 + 100s, "troupe_time_seconds_total", "state=\"training\"") == "70");
  CHECK(j.value(t0 + 100s, "troupe_hangs_total") == "2");
}

TEST_CASE("a standstill before the first step is counted once") {
  metered j;
  j.master(t0 + 1s, "training_started");
  j.master(t0 + 31s, "hang", {{"stood_ms", 20000.0}});
  j.master(t0 + 41s, "hang_over");
  j.master(t0 + 51s, "first_step");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"standing\"") == "30");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"starting\"") == "21");
  CHECK(j.value(t0 + 200s, "troupe_time_seconds_total", "state=\"training\"") == "149");
}

TEST_CASE("worlds that fail before their first step have not trained") {
  metered j;
  j.master(t0 + 1s, "training_started");
  j.master(t0 + 11s, "first_step");
  CHECK(j.m.knows_first_steps());
  j.master(t0 + 100s, "restarting", {{"exit_class", std::string("software")}});
  for (int n = 0; n < 3; ++n) {
    j.master(t0 + 101s + n * 10s, "training_again", {{"since_failure_ms", 1000.0}});
    j.master(t0 + 110s + n * 10s, "restarting", {{"exit_class", std::string("software")}});
  }
  j.master(t0 + 131s, "job_concluded", {{"success", false}});
  CHECK(j.m.time_in_all(t0 + 200s) == 131s);
  CHECK(j.m.time_in(t0 + 200s, spent::recovering) == 31s);
  CHECK(j.m.time_in(t0 + 200s, spent::starting) == 11s);
}

TEST_CASE("checkpoints") {
  metered j;
  CHECK(j.value(t0, "troupe_checkpoint_last_step") == "-");
  j.master(t0 + 10s, "step_settled", {{"step", std::int64_t{40}}});
  j.master(t0 + 11s, "step_given_up", {{"step", std::int64_t{50}}});
  CHECK(j.value(t0 + 30s, "troupe_checkpoint_last_step") == "40");
  CHECK(j.value(t0 + 30s, "troupe_checkpoint_age_seconds") == "20");
  CHECK(j.value(t0 + 30s, "troupe_checkpoint_steps_total", "result=\"complete\"") == "1");
  CHECK(j.value(t0 + 30s, "troupe_checkpoint_steps_total", "result=\"given_up\"") == "1");
}

TEST_CASE("a node that runs no master tells of itself only") {
  metered j;
  j.node(t0, "link_established");
  j.node(t0, "workers_started");
  CHECK(j.value(t0, "troupe_master_linked") == "1");
  CHECK(j.value(t0, "troupe_node_starts_total") == "1");
  CHECK(j.value(t0, "troupe_world_size") == "-");
  j.node(t0, "link_missing");
  CHECK(j.value(t0, "troupe_master_linked") == "0");
  diag::page_view page;
  page.step = 1007;
  page.steps_made = 7;
  CHECK(j.value(t0, "troupe_steps_total", "local_rank=\"1\"", {{0, {}}, {1, page}}) == "7");
  CHECK(j.value(t0, "troupe_step", "local_rank=\"1\"", {{0, {}}, {1, page}}) == "1007");
  CHECK(j.value(t0, "troupe_steps_total", "local_rank=\"0\"", {{0, {}}, {1, page}}) == "-");
}

TEST_CASE("events of other kinds, and fields that lack, change nothing but their counts") {
  metered j;
  j.master(t0, "generation_sealed");
  j.master(t0, "training_again");
  j.master(t0, "restarting");
  j.master(t0, "something_new", {{"step", std::string("x")}});
  CHECK(j.value(t0, "troupe_restarts_total", "class=\"other\"") == "1");
  CHECK(j.value(t0, "troupe_events_total", "level=\"notice\"") == "4");
}

TEST_CASE("classes without end do not make the page longer") {
  metered j;
  for (int n = 0; n < 1'000; ++n)
    j.master(t0, "restarting", {{"exit_class", std::to_string(n)}});
  CHECK(j.m.text(t0, {}).size() < 16'000);
  CHECK(j.value(t0, "troupe_restarts_total", "class=\"other\"") == "968");
}
