#include "runtime/base/recover_strategy.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("a list of recovery strategies has MindCluster's words") {
  for (const auto* good : {"retry", "retry,recover,recover-in-place,dump,exit", "dump, exit"})
    CHECK_MESSAGE(!unknown_recover_strategy(good), good);
  CHECK(unknown_recover_strategy("retry,reboot") == "reboot");
  CHECK(unknown_recover_strategy("") == "");
  CHECK(unknown_recover_strategy("retry,,exit") == "");
  CHECK(unknown_recover_strategy("Retry") == "Retry");
  CHECK(recover_strategies() == "retry, recover, recover-in-place, dump, exit");
}

TEST_CASE("a list tells what follows from it today") {
  CHECK(effect_of_recover_strategy("retry").find("does not choose yet") != std::string::npos);
  CHECK(effect_of_recover_strategy("retry").find("--save_at_breakpoint") == std::string::npos);
  CHECK(effect_of_recover_strategy("retry, dump").find("--save_at_breakpoint") !=
        std::string::npos);
}
