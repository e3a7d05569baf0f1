#include "actors/master/recovery/run_account.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_CASE("what interruptions have cost is told by cause") {
  run_account account;
  CHECK(account.in_words() == "");
  account.restarted("killed");
  account.stood_still(40ms);
  CHECK(account.in_words() == "; 1 restart (killed: 1), 40.0 ms in all without running workers");
  account.restarted("node lost");
  account.restarted("killed");
  account.stood_still(2s);
  CHECK(account.restarts() == 3);
  CHECK(account.in_words() ==
        "; 3 restarts (killed: 2, node lost: 1), 2.0 s in all without running workers");
}
