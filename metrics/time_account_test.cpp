#include "metrics/time_account.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::metrics;

namespace {

constexpr instant t0{};

} // namespace

TEST_CASE("time goes to what there is") {
  time_account a(t0);
  CHECK(a.goodput(t0) == 0);
  a.become(t0 + 10s, spent::training);
  a.become(t0 + 40s, spent::recovering);
  a.become(t0 + 50s, spent::training);
  CHECK(a.in(t0 + 60s, spent::starting) == 10s);
  CHECK(a.in(t0 + 60s, spent::training) == 40s);
  CHECK(a.in(t0 + 60s, spent::recovering) == 10s);
  CHECK(a.goodput(t0 + 60s) == doctest::Approx(40.0 / 60));
}

TEST_CASE("what is lost is counted at once, and no sum ever falls") {
  time_account a(t0);
  a.become(t0, spent::training);
  a.was_rather(t0 + 30s, spent::standing, 20s);
  CHECK(a.in(t0 + 30s, spent::training) == 30s);
  CHECK(a.in(t0 + 30s, spent::standing) == 20s);
  CHECK(a.in(t0 + 45s, spent::training) == 30s);
  CHECK(a.in(t0 + 60s, spent::training) == 40s);
  CHECK(a.in(t0 + 60s, spent::standing) == 20s);
  a.was_rather(t0 + 60s, spent::recovering, -5s);
  CHECK(a.in(t0 + 60s, spent::recovering) == 0s);
}

TEST_CASE("what is owed is taken from training only") {
  time_account a(t0);
  a.become(t0, spent::training);
  a.was_rather(t0 + 30s, spent::standing, 20s);
  a.become(t0 + 35s, spent::recovering);
  CHECK(a.in(t0 + 50s, spent::recovering) == 15s);
  a.become(t0 + 50s, spent::training);
  CHECK(a.in(t0 + 65s, spent::training) == 30s);
  CHECK(a.in(t0 + 66s, spent::training) == 31s);
}

TEST_CASE("after the end nothing counts for or against the job") {
  time_account a(t0);
  a.become(t0, spent::training);
  a.become(t0 + 10s, spent::concluded);
  CHECK(a.goodput(t0 + 1000s) == 1);
}

TEST_CASE("a clock that is read out of order") {
  time_account a(t0);
  a.become(t0 + 10s, spent::training);
  a.become(t0 + 9s, spent::recovering);
  CHECK(a.in(t0 + 20s, spent::recovering) == 10s);
  CHECK(a.in(t0 + 20s, spent::training) == 0s);
}
