#include "launch/wiring/master_wiring.hpp"

#include "launch/wiring/command_digest.hpp"
#include "launch/wiring/master_journal.hpp"
#include "runtime/base/limits.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

template<class Options>
Options taken(parsed<Options> p) {
  REQUIRE(std::holds_alternative<Options>(p));
  return std::get<Options>(std::move(p));
}

launcher_options launcher(std::vector<std::string> words) {
  words.emplace_back("train.py");
  return taken(parse_launcher(words, {}));
}

/// All that the master goes by.
std::string in_words(const actors::master_options& m) {
  std::string all = fmt::format(
      "{} {}:{} {}:{} unit {} join {} restarts {} slack {} stop {}", m.membership.job,
      m.membership.nodes_min, m.membership.nodes_max, m.rendezvous.nodes_min,
      m.rendezvous.nodes_max, m.rendezvous.unit, troupe::in_words(m.rendezvous.join_timeout),
      m.recovery.max_restarts.value_or(0), troupe::in_words(m.rendezvous.prepare_slack),
      troupe::in_words(m.rendezvous.stop_within));
  all += fmt::format(
      " last call {} relaunches {} progress {} {} at {}",
      m.rendezvous.last_call ? troupe::in_words(*m.rendezvous.last_call) : "none",
      m.rendezvous.relaunches_max.value_or(0), m.recovery.without_progress_max.value_or(0),
      troupe::in_words(m.recovery.progress_after), ports::to_string(m.gateway.listen_on));
  all += m.rendezvous.may_have_others ? " with others" : " alone";
  for (const int code : m.recovery.hardware.exit_codes)
    all += fmt::format(" {}", code);
  return all;
}

} // namespace

TEST_CASE("the same words make the same master, in the launcher and alone") {
  const std::vector<std::string> words{"--nnodes=2:5",
                                       "--node_unit=2",
                                       "--rdzv-id=mine",
                                       "--rdzv-endpoint=127.0.0.1:29411",
                                       "--rdzv-conf=join_timeout=77,last_call_timeout=11",
                                       "--max-restarts=9",
                                       "--node-relaunches=3",
                                       "--no-progress-limit=4",
                                       "--progress-after=5",
                                       "--hardware-exit-codes=7,8"};
  const auto alone = taken(parse_master(words, {}));
  auto launcher_words = words;
  launcher_words.emplace_back("--shutdown-timeout=90");
  const auto at_launcher = launcher(launcher_words);
  const auto one = master_options_of(settings_of(alone));
  const auto other = master_options_of(settings_of(at_launcher, {"127.0.0.1", 29411}));
  REQUIRE(one);
  REQUIRE(other);
  CHECK(in_words(*one) == in_words(*other));
  // How long workers may take is each node's own.
  CHECK(in_words(*one).find("stop 30.0 s") != std::string::npos);
  CHECK(one->membership.command.text.empty());
  CHECK(other->membership.command.text == "train.py");
}

TEST_CASE("a master alone that was told no number of restarts leaves it to the nodes") {
  const auto told = [](const std::vector<std::string>& words) {
    const auto m = master_options_of(settings_of(taken(parse_master(words, {}))));
    REQUIRE(m);
    return m->recovery.max_restarts;
  };
  CHECK(told({}) == std::nullopt);
  CHECK(told({"--max-restarts=0"}) == 0);
  CHECK(told({"--no-progress-limit=2"}) == limits::restarts_max);
}

TEST_CASE("what a launcher runs: the script's own name, and arguments where it could be any node") {
  const auto command = [](std::vector<std::string> options, std::vector<std::string> script) {
    options.insert(options.end(), script.begin(), script.end());
    return command_of(taken(parse_launcher(options, {})));
  };
  const std::vector<std::string> here{"--nnodes=1:2", "--rdzv-endpoint=127.0.0.1:1"};
  const auto one = command(here, {"/a/train.py", "--lr", "1"});
  CHECK(one.text == "train.py --lr 1");
  CHECK(one.arguments != 0);
  CHECK(command(here, {"/b/train.py", "--lr", "1"}).arguments == one.arguments);
  CHECK(command(here, {"/b/train.py", "--lr", "1"}).script == one.script);
  CHECK(command(here, {"train.py", "--lr", "2"}).arguments != one.arguments);
  CHECK(command(here, {"train.py", "--lr", "2"}).script == one.script);
  CHECK(command(here, {"train.py", "--lr1"}).arguments != one.arguments);
  CHECK(command(here, {"other.py"}).script != one.script);
  auto named = here;
  named.emplace_back("--rdzv-id=mine");
  CHECK(command(named, {"train.py", "--lr", "1"}).arguments == 0);
  CHECK(command(named, {"train.py", "--lr", "1"}).text == "train.py");
  auto ranked = here;
  ranked.emplace_back("--node-rank=1");
  CHECK(command(ranked, {"train.py", "--rank", "1"}).arguments == 0);
}

TEST_CASE("a journal belongs to a job that was named, or to one that was not") {
  CHECK(
      owner_of(launcher({"--rdzv-id=mine", "--nnodes=2", "--rdzv-endpoint=127.0.0.1:1"}), 7).job ==
      "mine");
  CHECK(owner_of(launcher({"--standalone"}), 7).job.empty());
  CHECK(owner_of(launcher({"--standalone"}), 7).run == 7);
  machine_facts pod;
  pod.environment["JOB_UID"] = "u1";
  CHECK(owner_of(taken(parse_master({"--rdzv-id=mine"}, pod)), pod).job == "mine");
  CHECK_FALSE(owner_of(taken(parse_master({}, pod)), pod).run);
  CHECK(owner_of(taken(parse_master({}, pod)), pod).uid.empty());
  CHECK(owner_of(taken(parse_master({"--elastic-job=mine"}, pod)), pod).uid == "u1");
}
