#include "actors/master/recovery/run_account.hpp"

#include <doctest/doctest.h>

using namespace troupe::actors;

TEST_CASE("restarts are told by cause") {
  run_account account;
  CHECK(account.in_words() == "");
  account.restarted("killed");
  CHECK(account.in_words() == "; 1 restart (killed: 1)");
  account.restarted("node lost");
  account.restarted("killed");
  CHECK(account.restarts() == 3);
  CHECK(account.in_words() == "; 3 restarts (killed: 2, node lost: 1)");
}
