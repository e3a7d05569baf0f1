#include "launch/options/recovery_words.hpp"

#include "launch/options/testing/launcher_line.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

namespace {

std::vector<std::string> remarks_with(const std::string& variable, const std::string& value) {
  auto machine = eight_cpus();
  machine.environment[variable] = value;
  return accepted({"t.py"}, machine).remarks;
}

} // namespace

TEST_CASE("--recover-strategy is taken, told in one line, and goes to the master") {
  const auto o = accepted({"--recover-strategy=retry,recover,dump", "t.py"});
  REQUIRE(o.remarks.size() == 1);
  CHECK(o.remarks.front() ==
        "--recover-strategy retry,recover,dump: it does not choose yet how the job recovers: after "
        "each failure all workers are started again on their nodes and load the newest checkpoint, "
        "as often as --max-restarts allows; for dump give --save_at_breakpoint, which writes the "
        "newest step in memory to disk first");
  REQUIRE(messages::find(o.of_job, "--recover-strategy"));
  CHECK(messages::find(o.of_job, "--recover-strategy")->value == "retry,recover,dump");
  CHECK(accepted({"t.py"}).remarks.empty());
}

TEST_CASE("an unknown strategy is refused by every program that takes it") {
  constexpr auto line = "--recover-strategy retry,reboot: 'reboot' is none of retry, recover, "
                        "recover-in-place, dump, exit; any of them are possible, separated by "
                        "commas";
  CHECK(refused({"--recover-strategy=retry,reboot", "t.py"}) == line);
  const auto master = parse_master({"--recover-strategy=retry,reboot"}, eight_cpus());
  REQUIRE(std::holds_alternative<refusal>(master));
  CHECK(std::get<refusal>(master).what == line);
  CHECK(std::holds_alternative<master_program_options>(
      parse_master({"--recover-strategy=exit"}, eight_cpus())));
}

TEST_CASE("each variable of MindCluster's guide is told in one line") {
  const std::pair<const char*, const char*> guide[] = {
      {"PROCESS_RECOVER", "on"},
      {"PROCESS_RECOVER", "off"},
      {"ELASTIC_PROCESS_RECOVER_ENABLE", "1"},
      {"HCCL_OP_RETRY_ENABLE", "L0:0, L1:1, L2:1"},
      {"HCCL_ASYNC_ERROR_HANDLING", "0"},
      {"MS_ENABLE_TFT", "{TTP:1, HCCE:1}"},
  };
  for (const auto& each : guide) {
    const std::string variable = each.first, value = each.second;
    const auto lines = remarks_with(variable, value);
    REQUIRE_MESSAGE(lines.size() == 1, variable);
    CHECK(lines.front().find(variable + "=" + value + ": ") == 0);
    CHECK(lines.front().find('\n') == std::string::npos);
  }
  CHECK(remarks_with("PROCESS_RECOVER", "").empty());
}

TEST_CASE("a value that is not known is told with those that are, and ends nothing") {
  CHECK(remarks_with("PROCESS_RECOVER", "maybe") ==
        std::vector<std::string>{
            "PROCESS_RECOVER: 'maybe' is not on or off; Troupe takes nothing from it"});
  CHECK(mentions(remarks_with("ELASTIC_PROCESS_RECOVER_ENABLE", "on").at(0), "1 or 0"));
  for (const auto* wrong : {"1", "L0", "L0:2", "L0:0;L1:1", "L0:0,"})
    CHECK(mentions(remarks_with("HCCL_OP_RETRY_ENABLE", wrong).at(0), "a list as L0:0,L1:1,L2:1"));
  CHECK(mentions(remarks_with("HCCL_ASYNC_ERROR_HANDLING", "off").at(0), "a whole number"));
}
