#include "metrics/exposition.hpp"

#include <doctest/doctest.h>

using namespace troupe::metrics;

TEST_CASE("families and their samples") {
  exposition e(labels{{"job_id", "words"}});
  e.counter("a_total", "How many.", 3);
  e.gauge("b", "Two of them.");
  e.sample(1.5, {{"which", "x"}});
  e.sample(1e9, {{"which", "y"}});
  CHECK(e.text() == "# HELP a_total How many.\n"
                    "# TYPE a_total counter\n"
                    "a_total{job_id=\"words\"} 3\n"
                    "# HELP b Two of them.\n"
                    "# TYPE b gauge\n"
                    "b{job_id=\"words\",which=\"x\"} 1.5\n"
                    "b{job_id=\"words\",which=\"y\"} 1000000000\n");
}

TEST_CASE("without labels") {
  exposition e(labels{});
  e.gauge("a", "One.", 1);
  CHECK(e.text() == "# HELP a One.\n# TYPE a gauge\na 1\n");
}

TEST_CASE("text that would be taken for the format's own") {
  exposition e(labels{{"job_id", "a\"b\\c\nd"}});
  e.gauge("a", "One\\two\nthree \"four\".", 1);
  CHECK(e.text() == "# HELP a One\\\\two\\nthree \"four\".\n"
                    "# TYPE a gauge\n"
                    "a{job_id=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST_CASE("a histogram's buckets hold all that is not above them") {
  duration_histogram h;
  for (const double seconds : {0.01, 0.02, 0.5, 7.0, 1e6})
    h.observe(seconds);
  exposition e(labels{});
  e.histogram("h", "Durations.");
  e.sample(h, {{"phase", "x"}});
  const auto has = [&](const std::string& line) {
    return e.text().find(line + "\n") != std::string::npos;
  };
  CHECK(has("h_bucket{phase=\"x\",le=\"0.01\"} 1"));
  CHECK(has("h_bucket{phase=\"x\",le=\"0.025\"} 2"));
  CHECK(has("h_bucket{phase=\"x\",le=\"0.25\"} 2"));
  CHECK(has("h_bucket{phase=\"x\",le=\"0.5\"} 3"));
  CHECK(has("h_bucket{phase=\"x\",le=\"10\"} 4"));
  CHECK(has("h_bucket{phase=\"x\",le=\"1800\"} 4"));
  CHECK(has("h_bucket{phase=\"x\",le=\"+Inf\"} 5"));
  CHECK(has("h_sum{phase=\"x\"} 1000007.53"));
  CHECK(has("h_count{phase=\"x\"} 5"));
}
