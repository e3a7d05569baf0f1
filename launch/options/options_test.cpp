#include "launch/options/options.hpp"

#include "launch/options/testing/launcher_line.hpp"
#include "launch/options/values.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::testing;

TEST_CASE("everything after the script belongs to the script") {
  const auto o = accepted({"--nproc-per-node", "2", "train.py", "--nnodes", "7", "-x", "--", "y"});
  CHECK(o.processes_per_node == 2);
  CHECK(o.nodes_max == 1);
  CHECK(o.command == std::vector<std::string>{"train.py", "--nnodes", "7", "-x", "--", "y"});
}

TEST_CASE("a double dash ends the launcher's own options") {
  CHECK(accepted({"--standalone", "--", "train.py", "a"}).command ==
        std::vector<std::string>{"train.py", "a"});
}

TEST_CASE("options may be written with dashes, underscores and equals signs") {
  CHECK(accepted({"--nproc_per_node=3", "t.py"}).processes_per_node == 3);
  CHECK(accepted({"--nproc-per-node=3", "t.py"}).processes_per_node == 3);
  CHECK(accepted({"--max_restarts", "5", "t.py"}).max_restarts == 5);
  CHECK(accepted({"--no_python", "t"}).no_python);
}

TEST_CASE("the last of several values wins") {
  CHECK(accepted({"--nnodes=1", "--nnodes=2:4", "t.py"}).nodes_min == 2);
}

TEST_CASE("defaults come from PET_ variables and the command line beats them") {
  auto machine = eight_cpus();
  machine.environment = {
      {"PET_NPROC_PER_NODE", "4"}, {"PET_STANDALONE", "1"}, {"PET_NO_PYTHON", "0"}};
  const auto from_environment = accepted({"t.py"}, machine);
  CHECK(from_environment.processes_per_node == 4);
  CHECK(from_environment.rendezvous.standalone);
  CHECK_FALSE(from_environment.no_python);
  CHECK(accepted({"--nproc-per-node=2", "t.py"}, machine).processes_per_node == 2);
}

TEST_CASE("what is wrong in a variable is told by the variable's name") {
  const auto told = [](const char* name, const char* value) {
    auto machine = eight_cpus();
    machine.environment = {{name, value}};
    return refused({"t.py"}, machine);
  };
  CHECK(told("PET_NNODES", "") == "PET_NNODES: '' is neither N nor MIN:MAX");
  CHECK(told("PET_NPROC_PER_NODE", "").find("PET_NPROC_PER_NODE: '' is not") == 0);
  CHECK(told("PET_NPROC_PER_NODE", "gpu").find("PET_NPROC_PER_NODE gpu: this machine") == 0);
  CHECK(told("PET_MAX_RESTARTS", "").find("PET_MAX_RESTARTS: '' is not") == 0);
  CHECK(told("PET_RDZV_CONF", "x").find("PET_RDZV_CONF: 'x' is not of the form") == 0);
  auto machine = eight_cpus();
  machine.environment = {{"PET_NNODES", "2"}};
  CHECK(refused({"--nnodes=", "t.py"}, machine) == "--nnodes: '' is neither N nor MIN:MAX");
  const auto master = parse_master({}, [] {
    auto m = eight_cpus();
    m.environment = {{"PET_NNODES", ""}};
    return m;
  }());
  REQUIRE(std::get_if<refusal>(&master));
  CHECK(std::get<refusal>(master).what.find("PET_NNODES: ''") == 0);
}

TEST_CASE("processes per node may be counted off the machine") {
  auto machine = eight_cpus();
  CHECK(accepted({"--nproc-per-node=cpu", "t.py"}, machine).processes_per_node == 8);
  CHECK(accepted({"--nproc-per-node=auto", "t.py"}, machine).processes_per_node == 8);
  CHECK(mentions(refused({"--nproc-per-node=gpu", "t.py"}, machine), "no NVIDIA GPU"));
  machine.gpus = 2;
  CHECK(accepted({"--nproc-per-node=auto", "t.py"}, machine).processes_per_node == 2);
}

TEST_CASE("only GPUs that workers will see count") {
  auto machine = eight_cpus();
  machine.gpus = 4;
  const auto seen = [&](const char* visible) {
    machine.environment["CUDA_VISIBLE_DEVICES"] = visible;
    return parse_processes("gpu", machine).value_or(0);
  };
  CHECK(seen("0,2") == 2);
  CHECK(seen("0, 3 ,9,1") == 2);
  CHECK(seen("1,1") == 1);
  CHECK(seen("GPU-a,MIG-b") == 2);
  CHECK(seen("") == 0);
  CHECK(seen("-1") == 0);
}

TEST_CASE("a job alone on its node has an id of its own, others the one they were given") {
  auto machine = eight_cpus();
  machine.fresh_id = "fresh";
  CHECK(accepted({"--rdzv-id=mine", "t.py"}, machine).rdzv_id == "fresh");
  CHECK(accepted({"--rdzv-id=mine", "--master-port=1", "t.py"}, machine).rdzv_id == "mine");
}

TEST_CASE("threads are limited where several workers share a node, and the user hears of it") {
  auto machine = eight_cpus();
  CHECK_FALSE(accepted({"t.py"}, machine).omp_threads);
  CHECK(accepted({"--nproc-per-node=2", "t.py"}, machine).omp_threads == 1u);
  CHECK(accepted({"--nproc-per-node=2", "t.py"}, machine).remarks.size() == 1);
  machine.environment["OMP_NUM_THREADS"] = "";
  CHECK_FALSE(accepted({"--nproc-per-node=2", "t.py"}, machine).omp_threads);
}

TEST_CASE("the shutdown timeout comes from the option, the environment, or is 30 s") {
  auto machine = eight_cpus();
  CHECK(accepted({"t.py"}, machine).shutdown_timeout == 30s);
  machine.environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "7";
  CHECK(accepted({"t.py"}, machine).shutdown_timeout == 7s);
  CHECK(accepted({"--shutdown-timeout=0", "t.py"}, machine).shutdown_timeout == 0s);
  machine.environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "x";
  CHECK(mentions(refused({"t.py"}, machine), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"));
}

TEST_CASE("signals end the job or are passed on, by what they are for") {
  const auto o = accepted({"--signals-to-handle=SIGTERM, SIGUSR1,,SIGTERM", "t.py"});
  CHECK(o.signals.ending == std::vector<int>{SIGTERM});
  CHECK(o.signals.passed_on == std::vector<int>{SIGUSR1});
  CHECK(o.signals.words == "SIGTERM, SIGUSR1,,SIGTERM");
  CHECK(accepted({"t.py"}).signals.ending.size() == 4);
  for (const auto* wrong : {"SIGKILL", "SIGCHLD", "SIGSEGV", "TERM", "15", "SIG_DFL"})
    CHECK_MESSAGE(mentions(refused({"--signals-to-handle", wrong, "t.py"}), wrong), wrong);
}

TEST_CASE("dlrover-run's options are known") {
  for (const auto* harmless :
       {"--precheck=0", "--node_unit=1", "--node-unit=1", "--accelerator=nvidia.com/gpu",
        "--auto_tunning", "--training_port=5", "--membind-policy=bind", "--ucp_device_type=cpu",
        "--box-pairs=0:1", "--min-bandwidth=1", "--min-channels=2", "--save_at_breakpoint",
        "--save-at-breakpoint"})
    CHECK_MESSAGE(accepted({harmless, "t.py"}).command.size() == 1, harmless);
  CHECK(accepted({"--auto_tunning", "t.py"}).auto_tuning);
  auto machine = eight_cpus();
  machine.environment["PET_AUTO_TUNNING"] = "1";
  CHECK(accepted({"t.py"}, machine).auto_tuning);
}

TEST_CASE("the check before the start") {
  CHECK_FALSE(accepted({"t.py"}).check.wanted);
  for (const auto* option : {"--precheck=1", "--precheck=2", "--network-check", "--network_check"})
    CHECK_MESSAGE(accepted({option, "t.py"}).check.wanted, option);
  CHECK_FALSE(accepted({"--precheck=1", "t.py"}).check.measures_bandwidth);
  CHECK(accepted({"--precheck=2", "t.py"}).check.measures_bandwidth);
  const auto o =
      accepted({"--network-check", "--comm-perf-test", "--exclude-straggler",
                "--straggler-factor=3", "--network-check-timeout=1.5", "--switchbox-check",
                "--box-pairs=0:1,2:4", "--min-bandwidth=5", "--min-channels=7", "t.py"})
          .check;
  CHECK(o.measures_bandwidth);
  CHECK(o.excludes_stragglers);
  CHECK(o.straggler_factor == 3);
  CHECK(o.within == 1500ms);
  CHECK(o.box_pairs == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {2, 4}});
  CHECK(o.min_bandwidth == 5);
  CHECK(o.min_channels == 7);
  CHECK(accepted({"--network-check", "--switchbox-check", "t.py"}).check.box_pairs.size() == 4);
  CHECK(accepted({"--network-check", "t.py"}).check.box_pairs.empty());
  // As the guide has them: words of their own.
  const auto pairs = accepted({"--network-check", "--switchbox-check", "--box-pairs", "0:1", "2:4",
                               "--min-channels", "3", "t.py", "3:5"});
  CHECK(pairs.check.box_pairs ==
        std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}, {2, 4}});
  CHECK(pairs.command == std::vector<std::string>{"t.py", "3:5"});
  // What no check hears is told.
  const auto remarks = [](const std::vector<std::string>& arguments) {
    return accepted(arguments).remarks;
  };
  CHECK(remarks({"--exclude-straggler", "t.py"}) ==
        std::vector<std::string>{"--exclude-straggler has no effect without --network-check"});
  CHECK(remarks({"--network-check", "--min-channels=3", "t.py"}) ==
        std::vector<std::string>{"--min-channels has no effect without --switchbox-check"});
  CHECK(remarks({"--network-check", "--exclude-straggler", "t.py"}).empty());
  CHECK(mentions(refused({"--comm-perf-test", "t.py"}), "give --network-check"));
  CHECK(mentions(refused({"--switchbox-check", "t.py"}), "give --network-check"));
  for (const auto* wrong :
       {"--box-pairs=0", "--box-pairs=0:0", "--box-pairs=0:1:2", "--box-pairs=a:b",
        "--box-pairs=", "--min-bandwidth=-1", "--min-channels=-1", "--straggler-factor=1",
        "--network-check-timeout=0", "--network-check-timeout=nan"})
    CHECK_MESSAGE(mentions(refused({wrong, "t.py"}),
                           std::string(wrong).substr(0, std::string(wrong).find('=')).c_str()),
                  wrong);
}

TEST_CASE("how fast copies are given") {
  CHECK(accepted({"t.py"}).copy_rate == 512u << 20);
  CHECK(accepted({"--copy-rate", "3", "t.py"}).copy_rate == 3u << 20);
  CHECK(accepted({"--copy-rate=0", "t.py"}).copy_rate == 0);
  CHECK(refused({"--copy-rate=-1", "t.py"}) == "--copy-rate: -1 is not from 0 to 1048576");
}

TEST_CASE("how long a node trains on without its master") {
  CHECK(accepted({"t.py"}).master_away_timeout == 30min);
  CHECK(accepted({"--master-away-timeout", "7200", "t.py"}).master_away_timeout == 2h);
  CHECK(accepted({"--master-away-timeout=0", "t.py"}).master_away_timeout == 0s);
  CHECK(refused({"--master-away-timeout=-1", "t.py"}) ==
        "--master-away-timeout: -1 seconds; 0 to 604800 are possible");
}

TEST_CASE("sizes and budgets") {
  const auto o = accepted({"--nnodes=2:7", "--node_unit=3", "--elasticity-config=ds.json",
                           "--elasticity-variant=uncapped", "--node-relaunches=0",
                           "--job-restarts=5", "--no-progress-limit=4", "--progress-after=0.5",
                           "--hardware-exit-codes=7, 8", "--hardware-words=a,,b, c d ", "t.py"})
                     .policy;
  CHECK(o.node_unit == 3);
  CHECK_FALSE(o.save_at_breakpoint);
  CHECK(accepted({"--save_at_breakpoint", "t.py"}).policy.save_at_breakpoint);
  CHECK(o.elasticity_config == "ds.json");
  CHECK_FALSE(o.elasticity_capped);
  CHECK(*o.node_relaunches == 0);
  CHECK(*o.job_restarts == 5);
  CHECK(*o.no_progress_limit == 4);
  CHECK(o.progress_after == 500ms);
  CHECK(*o.hardware_exit_codes == std::vector<std::int32_t>{7, 8});
  CHECK(*o.hardware_words == std::vector<std::string>{"a,b", "c d"});
  CHECK(accepted({"--hardware-exit-codes=", "t.py"}).policy.hardware_exit_codes->empty());
  CHECK(accepted({"--hardware-words= ", "t.py"}).policy.hardware_words->empty());
  for (const auto* wrong :
       {"--node_unit=0", "--node_unit=2", "--elasticity-variant=both", "--node-relaunches=-1",
        "--job-restarts=-1", "--no-progress-limit=0", "--progress-after=-1", "--progress-after=nan",
        "--hardware-exit-codes=0", "--hardware-exit-codes=x", "--hardware-words=a, ,b",
        "--hardware-words=,"}) {
    const std::string option = wrong;
    CHECK_MESSAGE(
        mentions(refused({"--nnodes=3", option, "t.py"}), option.substr(0, option.find('='))),
        wrong);
  }
}

TEST_CASE("what is done about ranks that stand still") {
  const auto by_default = accepted({"t.py"}).hangs;
  CHECK(by_default.action == hang_action::tell);
  CHECK_FALSE(by_default.timeout);
  CHECK(accepted({"--hang-action=off", "t.py"}).hangs.action == hang_action::off);
  CHECK(accepted({"--hang-action=0", "t.py"}).hangs.action == hang_action::tell);
  CHECK(accepted({"--hang-action=2", "t.py"}).hangs.action == hang_action::act);
  const auto told = accepted({"--hang-action=1", "--hang-command=mail me", "t.py"}).hangs;
  CHECK(told.action == hang_action::notify);
  CHECK(told.command == "mail me");
  CHECK(*accepted({"--hang-timeout=1.5", "t.py"}).hangs.timeout == 1500ms);
  CHECK_FALSE(accepted({"--hang-timeout=0", "t.py"}).hangs.timeout);
  for (const auto* wrong : {"--hang-action=kill", "--hang-action=notify", "--hang-timeout=-1",
                            "--hang-timeout=0.1", "--hang-timeout=nan", "--hang-timeout=2000000"}) {
    const std::string option = wrong;
    CHECK_MESSAGE(mentions(refused({option, "t.py"}), option.substr(0, option.find('='))), wrong);
  }
}

TEST_CASE("as long as there is progress restarts are only bounded if that was said") {
  CHECK(accepted({"t.py"}).max_restarts == 0);
  CHECK(accepted({"--no-progress-limit=2", "t.py"}).max_restarts == limits::restarts_max);
  CHECK(accepted({"--no-progress-limit=2", "--max-restarts=5", "t.py"}).max_restarts == 5);
}

TEST_CASE("completion knows every option, for three shells") {
  for (const auto* shell : {"bash", "zsh", "tcsh"}) {
    const auto p = parse_launcher({"--print-completion", shell}, eight_cpus());
    const auto* text = std::get_if<just_print>(&p);
    REQUIRE(text);
    CHECK(mentions(text->text, "actor-launcher"));
    CHECK(mentions(text->text, "nproc-per-node"));
    CHECK(mentions(text->text, "core-complex"));
  }
  CHECK(mentions(refused({"--print-completion=elvish"}), "elvish"));
}

TEST_CASE("options of the launcher that stand behind the script are told of") {
  const auto remarks = [](std::vector<std::string> behind) {
    behind.insert(behind.begin(), "t.py");
    return accepted(behind).remarks;
  };
  CHECK(remarks({"--nproc-per-node", "4"}).at(0) ==
        "--nproc-per-node stands behind the script, so 't.py' gets it and actor-launcher does not; "
        "options of the launcher go before the script");
  CHECK(mentions(remarks({"--rdzv_endpoint=h:1"}).at(0), "--rdzv_endpoint stands behind"));
  CHECK(remarks({"--nnodes=2", "--tee=3"}).size() == 1);
  // Words that many scripts have as well, and what looks like a beginning of one of ours.
  CHECK(remarks({"--verbose", "--log-dir=x", "--module", "--nnodesx", "--max-restart"}).empty());
}

TEST_CASE("unknown settings are refused with the one that was probably meant") {
  CHECK(refused({"--rdzv-conf=join_timout=5", "t.py"}) ==
        "--rdzv-conf: 'join_timout' is no setting; did you mean join_timeout?");
  CHECK(refused({"--rdzv-conf=frob=5", "t.py"}) ==
        "--rdzv-conf: 'frob' is no setting (see --help)");
  // torchrun's own, for its other backends, mean nothing here.
  accepted({"--rdzv-conf=timeout=5,protocol=https,etcd_prefix=/x", "t.py"});
}

TEST_CASE("bad input gets one line that names the thing") {
  CHECK(mentions(refused({}), "which script"));
  CHECK(mentions(refused({"--frobnicate", "t.py"}), "--frobnicate"));
  CHECK(mentions(refused({"--tee=4", "t.py"}), "--tee"));
  CHECK(mentions(refused({"--nproc-per-node=0", "t.py"}), "--nproc-per-node"));
  CHECK(mentions(refused({"--nproc-per-node=100000", "t.py"}), "1 to 1024"));
  CHECK(mentions(refused({"--nnodes=2:1", "t.py"}), "--nnodes"));
  CHECK(mentions(refused({"--node-rank=2", "--nnodes=2", "t.py"}), "--node-rank 2"));
  CHECK(mentions(refused({"--max-restarts=-1", "t.py"}), "max-restarts"));
  CHECK(mentions(refused({"--rdzv-endpoint=a:b:c", "t.py"}), "--rdzv-endpoint"));
  CHECK(mentions(refused({"--rdzv-backend=etcd", "t.py"}), "rdzv-backend"));
  CHECK(mentions(refused({"-m", "--no-python", "t"}), "exclude each other"));
  CHECK(mentions(refused({"--certificate=c.pem", "t.py"}), "--key"));
  CHECK(mentions(refused({"--standalone", "--nnodes=2", "t.py"}), "--standalone"));
}

TEST_CASE("help names the options that are needed most, --help-all every option; nothing is run") {
  const auto shown = [](const char* asked) {
    const auto p = parse_launcher({asked}, eight_cpus());
    const auto* text = std::get_if<just_print>(&p);
    REQUIRE(text);
    return text->text;
  };
  for (const auto* name : {"Examples", "--nnodes", "--nproc-per-node", "--rdzv-endpoint",
                           "--max-restarts", "--json-log", "--help-all"}) {
    CHECK_MESSAGE(mentions(shown("--help"), name), name);
    CHECK_MESSAGE(mentions(shown("--help-all"), name), name);
  }
  CHECK_FALSE(mentions(shown("--help"), "--monitor-interval"));
  CHECK(mentions(shown("--help-all"), "--monitor-interval"));
}

TEST_CASE("help is as wide as the terminal, within reason") {
  const auto longest_at = [](std::size_t columns) {
    auto machine = eight_cpus();
    machine.columns = columns;
    const auto p = parse_launcher({"--help-all"}, machine);
    std::size_t most = 0;
    for (const auto& line : split(std::get<just_print>(p).text, '\n'))
      most = std::max(most, line.size());
    return most;
  };
  CHECK(longest_at(100) < 100);
  CHECK(longest_at(100) > 80);
  CHECK(longest_at(500) < 110);
  CHECK(longest_at(20) == longest_at(60));
}

TEST_CASE("no program's help is wider than 80 columns, and no line of it is blank at its end") {
  const auto lines = [](const auto& parsed) {
    const auto* text = std::get_if<just_print>(&parsed);
    REQUIRE(text);
    return split(text->text, '\n');
  };
  for (const auto& all :
       {lines(parse_launcher({"--help"}, eight_cpus())),
        lines(parse_launcher({"--help-all"}, eight_cpus())),
        lines(parse_master({"--help"}, eight_cpus())), lines(parse_shell({"--help"}, eight_cpus())),
        lines(parse_stacks({"--help"}, eight_cpus())), lines(parse_dump({"--help"}, eight_cpus())),
        lines(parse_probe({"--help"}, eight_cpus()))})
    for (const auto& line : all) {
      CHECK_MESSAGE(line.size() < 80, line);
      CHECK_MESSAGE((line.empty() || line.back() != ' '), line);
    }
}

TEST_CASE("the doctor takes the launcher's options, needs no script, and knows some more") {
  const auto read = [](const std::vector<std::string>& words) {
    return parse_doctor(words, eight_cpus());
  };
  const auto bare = read({});
  REQUIRE(std::get_if<doctor_options>(&bare));
  CHECK(std::get<doctor_options>(bare).job.command.empty());
  const auto full =
      read({"--json", "--nnodes=2", "--checkpoints", "/ckpt", "-r3", "t.py", "--json"});
  REQUIRE(std::get_if<doctor_options>(&full));
  CHECK(std::get<doctor_options>(full).json);
  CHECK(std::get<doctor_options>(full).checkpoints == "/ckpt");
  CHECK(std::get<doctor_options>(full).job.nodes_max == 2);
  CHECK(std::get<doctor_options>(full).job.command == std::vector<std::string>{"t.py", "--json"});
  const auto wrong = read({"--nodes=2"});
  REQUIRE(std::get_if<refusal>(&wrong));
  CHECK(mentions(std::get<refusal>(wrong).what, "--nnodes"));
  const auto token = read({"--new-token"});
  CHECK(std::get_if<refusal>(&token));
  // A launcher does not know them.
  CHECK(mentions(refused({"--checkpoints=/ckpt", "t.py"}), "--checkpoints"));
}

TEST_CASE("help, manual and completion of the launcher tell of the doctor") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--print-manual=man"},
                                             {"--print-manual=markdown"},
                                             {"--print-completion=bash"},
                                             {"--print-completion=zsh"},
                                             {"--print-completion=fish"}}) {
    const auto p = parse_launcher(words, eight_cpus());
    REQUIRE(std::get_if<just_print>(&p));
    CHECK_MESSAGE(mentions(std::get<just_print>(p).text, "doctor"), words.front());
  }
  const auto p = parse_doctor({"--print-completion=bash"}, eight_cpus());
  CHECK(std::get_if<refusal>(&p));
}

TEST_CASE("ranks by the network") {
  const auto by_default = accepted({"t.py"});
  CHECK(by_default.policy.topology.file.empty());
  CHECK(by_default.policy.topology.worse_by == 1);
  CHECK(by_default.policy.topology.wait == 60s);
  CHECK(by_default.switches.empty());
  const auto told = accepted({"--topology=f", "--topology-labels=zone, rack", "--topology-wait=1.5",
                              "--topology-worse-by=0", "--switches=pod-0/rack-7", "t.py"});
  CHECK(told.policy.topology.file == "f");
  CHECK(told.policy.topology.label_keys == std::vector<std::string>{"zone", "rack"});
  CHECK(told.policy.topology.wait == 1500ms);
  CHECK(told.policy.topology.worse_by == 0);
  CHECK(told.switches == std::vector<std::string>{"pod-0", "rack-7"});
  for (const auto* wrong : {"--topology-labels=zone", "--topology-wait=-1", "--topology-wait=3601",
                            "--topology-worse-by=-1", "--switches=a//b"})
    CHECK(mentions(refused({wrong, "t.py"}), std::string(wrong).substr(0, 8)));
  auto pod = eight_cpus();
  pod.environment["PET_SWITCHES"] = "rack-7";
  CHECK(accepted({"t.py"}, pod).switches == std::vector<std::string>{"rack-7"});
  CHECK(accepted({"t.py"}, pod).machine.empty());
  pod.environment["NODE_NAME"] = "gpu-4";
  pod.environment["NODE_IP"] = " 192.168.0.4 ";
  pod.environment["MA_CURRENT_HOST_IP"] = std::string(300, 'x');
  CHECK(accepted({"t.py"}, pod).machine == std::vector<std::string>{"gpu-4", "192.168.0.4"});
}

TEST_CASE("ranks that are only printed: no script, and the nodes of the file unless said") {
  const auto all = accepted({"--print-ranks", "--topology=f"}).ranks_wanted;
  REQUIRE(all);
  CHECK_FALSE(all->nodes);
  CHECK(all->unit == 1);
  CHECK_FALSE(all->json);
  const auto some =
      accepted({"--print-ranks", "--topology=f", "--nnodes=2:4", "--node_unit=2", "json"})
          .ranks_wanted;
  REQUIRE(some);
  CHECK(some->nodes == 4u);
  CHECK(some->unit == 2);
  CHECK(some->json);
  CHECK(mentions(refused({"--print-ranks"}), "--topology FILE"));
  CHECK(mentions(refused({"--print-ranks", "--topology=f", "t.py"}), "'t.py' is not json"));
  CHECK(mentions(refused({"--print-ranks", "--topology=f", "--node_unit=0"}), "--node_unit: 0"));
}
