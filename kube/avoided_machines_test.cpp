#include "kube/avoided_machines.hpp"

#include "kube/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;

namespace {

using names = std::vector<std::string>;
constexpr instant zero{};

} // namespace

TEST_CASE("avoided_machines: a lost node's for a while, a broken one's for good") {
  avoided_machines a;
  a.add("lost", zero + 60s);
  CHECK(a.at(zero + 59s).machines == names{"lost"});
  CHECK(a.at(zero + 59s).is_for_a_while);
  CHECK(a.at(zero + 60s).machines.empty());
  CHECK_FALSE(a.at(zero + 60s).is_for_a_while);
  a.add("broken", std::nullopt);
  CHECK(a.at(zero + 1h).machines == names{"broken"});
  CHECK_FALSE(a.at(zero + 1h).is_for_a_while);
}

TEST_CASE("avoided_machines: what is broken stays so, though its node is lost as well") {
  avoided_machines a;
  a.add("m", std::nullopt);
  a.add("m", zero + 60s);
  CHECK(a.at(zero + 1h).machines == names{"m"});
  a.add("n", zero + 60s);
  a.add("n", std::nullopt);
  CHECK(a.at(zero + 1h).machines == names{"m", "n"});
}

TEST_CASE("avoided_machines: one that is lost again is avoided anew, and stands once") {
  avoided_machines a;
  a.add("m", zero + 60s);
  a.add("m", zero + 90s);
  CHECK(a.at(zero + 80s).machines == names{"m"});
  CHECK(a.at(zero).machines.size() == 1);
}

TEST_CASE(
    "avoided_machines: a pod that had none has no machine to avoid; of too many the oldest goes") {
  avoided_machines a;
  a.add("", std::nullopt);
  CHECK(a.at(zero).machines.empty());
  for (std::size_t n = 0; n <= limits::machines_avoided_max; ++n)
    a.add("m" + std::to_string(n), std::nullopt);
  CHECK(a.at(zero).machines.size() == limits::machines_avoided_max);
  CHECK(a.at(zero).machines.front() == "m1");
}
