#include "launch/options/job_words.hpp"

#include "launch/options/arguments.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace troupe;
using namespace troupe::launch;

namespace {

launcher_options node(std::vector<std::string> arguments,
                      std::map<std::string, std::string> environment = {}) {
  arguments.emplace_back("t.py");
  machine_facts machine;
  machine.environment = std::move(environment);
  auto parsed = parse_launcher(arguments, machine);
  if (const auto* wrong = std::get_if<refusal>(&parsed))
    FAIL(wrong->what);
  return std::get<launcher_options>(parsed);
}

std::string said(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment = {}) {
  return in_words(node(arguments, environment).of_job);
}

parsed<master_program_options> heard(const std::vector<std::string>& own,
                                     const messages::job_words& words) {
  return parse_master(own, {}, words);
}

} // namespace

TEST_SUITE("the words of a job") {
  TEST_CASE("are a node's options of the job, as they were typed, from words and from variables") {
    CHECK(said({}).empty());
    CHECK(said({"--network-check", "--straggler-factor", "3", "--role", "r", "-r3"}) ==
          "--network-check, --straggler-factor 3");
    CHECK(said({}, {{"PET_NETWORK_CHECK", "1"}, {"PET_HANG_TIMEOUT", "9"}}) ==
          "--hang-timeout 9, --network-check");
    CHECK(said({"--hang-timeout=8", "--hang-timeout=7"}, {{"PET_HANG_TIMEOUT", "9"}}) ==
          "--hang-timeout 7");
    // DLRover's variables are of the job; in a pod its master does not see them.
    CHECK(said({"--graceful-within=5"},
               {{"DLROVER_TRAINING_ELASTIC_MODE", "ucp"}, {"DLROVER_UCP_MAX_WAIT_TIME", "7"}}) ==
          "--graceful-within 5, --elastic-mode ucp");
  }

  TEST_CASE("name the size that was meant, and of --rdzv-conf what is the master's") {
    CHECK(said({"--nnodes=2", "--rdzv-endpoint=h:1"}) == "--nnodes 2:2");
    CHECK(said({"--rdzv-conf=is_host=1, last_call_timeout=3,read_timeout=9,join_timeout=5"}) ==
          "--rdzv-conf last_call_timeout=3, --rdzv-conf join_timeout=5");
    CHECK(said({"--rdzv-conf=read_timeout=9"}).empty());
    CHECK(said({"--rdzv-id=x", "--max-restarts=3"}).empty());
  }

  TEST_CASE("are heard by a master that was told nothing, as if they had been its own") {
    const std::vector<std::string> words{"--nnodes=2:6",
                                         "--node_unit=2",
                                         "--rdzv-conf=join_timeout=5,last_call_timeout=3",
                                         "--hang-action=act",
                                         "--hang-timeout=9",
                                         "--network-check",
                                         "--comm-perf-test",
                                         "--exclude-straggler",
                                         "--straggler-factor=3",
                                         "--network-check-timeout=7",
                                         "--switchbox-check",
                                         "--box-pairs=0:1",
                                         "--min-bandwidth=5",
                                         "--min-channels=1",
                                         "--precheck=1",
                                         "--elasticity-config=/e.json",
                                         "--elasticity-variant=uncapped",
                                         "--node-relaunches=4",
                                         "--job-restarts=6",
                                         "--no-progress-limit=5",
                                         "--progress-after=6",
                                         "--undo-worse-scaling",
                                         "--hardware-exit-codes=7,8",
                                         "--recover-strategy=retry,dump",
                                         "--hardware-words=",
                                         "--topology=/t",
                                         "--topology-labels=a,b",
                                         "--topology-worse-by=2",
                                         "--topology-wait=3",
                                         "--elastic-mode=ucp",
                                         "--graceful-signal=SIGUSR2",
                                         "--graceful-save-within=4",
                                         "--graceful-within=5"};
    auto of_node = words;
    of_node.emplace_back("--rdzv-endpoint=h:1");
    const auto sent = node(of_node).of_job;
    auto with_file = sent;
    for (auto& word : with_file)
      word.content = word.name == elasticity_option ? "{}" : "";
    const auto taken = heard({}, with_file);
    if (const auto* wrong = std::get_if<refusal>(&taken))
      FAIL(wrong->what);
    const auto told = std::get<master_program_options>(taken);
    const auto own = std::get<master_program_options>(parse_master(words, {}));
    CHECK(in_words(own.of_job) == in_words(sent));
    CHECK(told.of_job.empty());
    CHECK(told.nodes_min == own.nodes_min);
    CHECK(told.nodes_max == own.nodes_max);
    CHECK(told.nodes_said);
    CHECK(told.rendezvous.join_timeout == own.rendezvous.join_timeout);
    CHECK(told.rendezvous.last_call_timeout == own.rendezvous.last_call_timeout);
    CHECK(told.hangs.action == own.hangs.action);
    CHECK(told.hangs.timeout == own.hangs.timeout);
    CHECK(told.check.wanted);
    CHECK(told.check.measures_bandwidth);
    CHECK(told.check.excludes_stragglers);
    CHECK(told.check.straggler_factor == 3);
    CHECK(told.check.within == own.check.within);
    CHECK(told.check.box_pairs.size() == 1);
    CHECK(told.check.min_bandwidth == 5);
    CHECK(told.check.min_channels == 1);
    CHECK(told.policy.node_unit == 2);
    CHECK(told.policy.elasticity_config == "/e.json");
    CHECK_FALSE(told.policy.elasticity_capped);
    CHECK(told.policy.node_relaunches == 4);
    CHECK(told.policy.job_restarts == 6);
    CHECK(told.policy.no_progress_limit == 5);
    CHECK(told.policy.progress_after == own.policy.progress_after);
    CHECK(told.policy.undo_worse_scaling);
    CHECK(told.policy.hardware_exit_codes == own.policy.hardware_exit_codes);
    CHECK(told.policy.recover_strategy == "retry,dump");
    CHECK(told.policy.hardware_words == std::vector<std::string>{});
    CHECK(told.policy.topology.file == "/t");
    CHECK(told.policy.topology.label_keys == own.policy.topology.label_keys);
    CHECK(told.policy.topology.worse_by == 2);
    CHECK(told.policy.topology.wait == own.policy.topology.wait);
    CHECK(told.policy.planned_end.asks);
    CHECK(told.policy.planned_end.signal == own.policy.planned_end.signal);
    CHECK(told.policy.planned_end.begin_within == own.policy.planned_end.begin_within);
    CHECK(told.policy.planned_end.within == own.policy.planned_end.within);

    // No option of the job is missing above: those of the launcher's table, by its scope.
    std::set<std::string> above;
    for (const auto& word : sent)
      above.insert(word.name);
    const auto manual =
        std::get<just_print>(parse_launcher({"--print-manual", "markdown"}, {})).text;
    std::set<std::string> table;
    for (std::size_t at = 0; (at = manual.find("| `--", at)) != std::string::npos; ++at) {
      const auto line = manual.substr(at, manual.find('\n', at) - at);
      const auto name = line.substr(3, line.find_first_of("` ", 3) - 3);
      const bool of_job = line.find("` | job") != std::string::npos;
      if (of_job && line.find("Refused") == std::string::npos)
        table.insert(name);
    }
    table.erase("--rdzv-id"); // tells jobs apart
    for (const auto* key : {"--rdzv-conf join_timeout", "--rdzv-conf last_call_timeout"})
      CHECK(above.erase(key) == 1);
    above.insert("--rdzv-conf");
    CHECK(above == table);
  }

  TEST_CASE("do not count where the master was told the same option itself") {
    const auto o = std::get<master_program_options>(
        heard({"--straggler-factor=4", "--nnodes=3"},
              node({"--straggler-factor=3", "--network-check", "--nnodes=2", "--rdzv-endpoint=h:1"})
                  .of_job));
    CHECK(o.check.straggler_factor == 4);
    CHECK(o.check.wanted);
    CHECK(o.nodes_max == 3);
    CHECK(in_words(o.of_job) == "--straggler-factor 4, --nnodes 3:3");
  }

  TEST_CASE("of --rdzv-conf count key by key") {
    const auto words = node({"--rdzv-conf=join_timeout=3,last_call_timeout=4"}).of_job;
    auto o = std::get<master_program_options>(heard({"--rdzv-conf=read_timeout=30"}, words));
    CHECK(o.rendezvous.join_timeout == std::chrono::seconds(3));
    CHECK(o.rendezvous.read_timeout == std::chrono::seconds(30));
    o = std::get<master_program_options>(heard({"--rdzv-conf=join_timeout=1800"}, words));
    CHECK(o.rendezvous.join_timeout == std::chrono::seconds(1800));
    CHECK(o.rendezvous.last_call_timeout == std::chrono::seconds(4));
  }

  TEST_CASE("bring the files that they name, where the master was not told them itself") {
    messages::job_words words{{"--elasticity-config", "/e.json", false, false, "{}"},
                              {"--topology", "/t", false, false, "a b c"}};
    auto o = std::get<master_program_options>(heard({}, words));
    CHECK(o.policy.elasticity_content == "{}");
    CHECK(o.policy.topology.content == "a b c");
    o = std::get<master_program_options>(
        heard({"--topology=/own", "--elasticity-config=/x"}, words));
    CHECK(o.policy.elasticity_content.empty());
    CHECK(o.policy.topology.content.empty());
    CHECK(o.policy.topology.file == "/own");
  }

  TEST_CASE("a master listens on every address of both families where it is told *") {
    const auto where = [](const std::string& said) {
      return ports::to_string(
          std::get<master_program_options>(heard({"--listen=" + said}, {})).listen);
    };
    CHECK(where("*:50001") == "*:50001");
    CHECK(where("*") == "*:29400");
    CHECK(where("0.0.0.0:1") == "0.0.0.0:1");
    CHECK(where("[::1]:1") == "[::1]:1");
    for (const auto* wrong : {"*:", "*x", "**:1", "*:70000"})
      CHECK(std::holds_alternative<refusal>(heard({std::string("--listen=") + wrong}, {})));
  }

  TEST_CASE("that no master takes are refused with the option's name") {
    const auto wrong = [](const messages::job_words& words) {
      return std::get<refusal>(heard({}, words)).what;
    };
    CHECK(wrong({{"--straggler-factor", "x", false, false, {}}}) ==
          "--straggler-factor: 'x' is not a number");
    CHECK(wrong({{"--kubeconfig", "/f", false, false, {}}}) ==
          "--kubeconfig is no option of the job");
    CHECK(wrong({{"--rdzv-id", "x", false, false, {}}}) == "--rdzv-id is no option of the job");
    CHECK(wrong({{"--elasticity-config", "/fifo", false, false, {}}}) ==
          "--elasticity-config /fifo: the node has not sent the file");
    CHECK(wrong({{"--help", "", true, false, {}}}) == "--help is no option of the job");
    CHECK(wrong({{"--listen", "h:1", false, false, {}}}) == "--listen is no option of the job");
    CHECK(wrong({{"--of-a-later-version", "", true, false, {}}}).find("--of-a-later-version") !=
          std::string::npos);
    // A program that is run on the master's machine is only the master's to say.
    CHECK(wrong(node({"--hang-action=notify", "--hang-command=x"}).of_job) ==
          "--hang-action notify: --hang-command says what is to be run");
  }
}
