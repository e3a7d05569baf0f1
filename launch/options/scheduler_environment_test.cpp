#include "launch/options/scheduler_environment.hpp"

#include "launch/options/options.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

using variables = std::map<std::string, std::string>;

const variables slurm{{"SLURM_JOB_ID", "20007"},
                      {"SLURM_JOB_NODELIST", "gpu[01-04]"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_NNODES", "4"}};
const variables volcano{{"VC_MASTER_HOSTS", "job-master-0.job"},
                        {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"}};

variables with(variables base, const variables& more) {
  for (const auto& [name, value] : more)
    base[name] = value;
  return base;
}

/// "host:port" of the master, "rank R of N" as far as known, and from where.
std::string told(const variables& environment, const std::string& host = "here") {
  const auto s = find_scheduler_environment(environment, host);
  if (!s)
    return s.error().what;
  if (!s->master)
    return "nothing";
  std::string words = ports::to_string(*s->master);
  if (s->node_rank)
    words += " rank " + std::to_string(*s->node_rank);
  if (s->nodes)
    words += " of " + std::to_string(*s->nodes);
  return words + " from " + s->from;
}

launcher_options launched(std::vector<std::string> arguments, const variables& environment,
                          const std::string& host = "here") {
  machine_facts machine;
  machine.environment = environment;
  machine.host = host;
  arguments.emplace_back("t.py");
  const auto parsed = parse_launcher(arguments, machine);
  if (const auto* wrong = std::get_if<refusal>(&parsed))
    FAIL(wrong->what);
  return std::get<launcher_options>(parsed);
}

/// Where the nodes meet, this node's rank, and what said so.
std::string met(const std::vector<std::string>& arguments, const variables& environment,
                const std::string& host = "here") {
  const auto r = launched(arguments, environment, host).rendezvous;
  if (r.standalone)
    return "alone";
  return ports::to_string(r.endpoint) +
         (r.node_rank ? " rank " + std::to_string(*r.node_rank) : std::string()) + " from " +
         r.endpoint_from + (r.at_first_node ? ", at the first node" : "");
}

} // namespace

TEST_CASE("the variables that say most about the master go first") {
  const variables dlrover{{"DLROVER_MASTER_ADDR", "pod:50001"}};
  const variables ours{{"TROUPE_MASTER_ADDR", "head"}};
  const variables pet{{"PET_MASTER_ADDR", "pet"}};
  CHECK(told({}) == "nothing");
  CHECK(told(slurm) == "gpu01:15007 rank 2 of 4 from SLURM_JOB_NODELIST");
  CHECK(told(with(slurm, volcano)) == "job-master-0.job:29500 of 3 from VC_MASTER_HOSTS");
  CHECK(told(with(with(slurm, volcano), pet)) == "nothing");
  CHECK(told(with(with(slurm, pet), dlrover)) == "pod:50001 from DLROVER_MASTER_ADDR");
  CHECK(told(with(dlrover, ours)) == "head:29400 from TROUPE_MASTER_ADDR");
  CHECK(told(with(slurm, {{"TROUPE_MASTER_ADDR", ""}})) ==
        "gpu01:15007 rank 2 of 4 from SLURM_JOB_NODELIST");
}

TEST_CASE("an address has its port in another variable, behind it, or by default") {
  CHECK(told({{"TROUPE_MASTER_ADDR", "h"}, {"TROUPE_MASTER_PORT", "7"}}) ==
        "h:7 from TROUPE_MASTER_ADDR");
  CHECK(told({{"TROUPE_MASTER_ADDR", "h:6"}}) == "h:6 from TROUPE_MASTER_ADDR");
  CHECK(told({{"TROUPE_MASTER_ADDR", "::1"}, {"TROUPE_MASTER_PORT", "7"}}) ==
        "[::1]:7 from TROUPE_MASTER_ADDR");
  CHECK(told({{"TROUPE_MASTER_ADDR", "[fe80::1%eth0]:6"}}) ==
        "[fe80::1%eth0]:6 from TROUPE_MASTER_ADDR");
  CHECK(told({{"TROUPE_MASTER_ADDR", "h"}, {"TROUPE_MASTER_PORT", "70000"}}) ==
        "TROUPE_MASTER_PORT: '70000' is not a number from 0 to 65535");
  CHECK(told({{"TROUPE_MASTER_ADDR", "a b"}}).find("TROUPE_MASTER_ADDR: 'a b' is not") == 0);
}

TEST_CASE("Volcano's hosts are the masters and then the workers, and a node finds itself by name") {
  CHECK(told(volcano, "job-worker-0") == "job-master-0.job:29500 rank 1 of 3 from VC_MASTER_HOSTS");
  CHECK(told(volcano, "job-master-0.job.ns") ==
        "job-master-0.job:29500 rank 0 of 3 from VC_MASTER_HOSTS");
  CHECK(told({{"VC_WORKER_HOSTS", "w0,w1"}}, "w1") == "w0:29500 rank 1 of 2 from VC_WORKER_HOSTS");
  CHECK(told({{"VC_WORKER_HOSTS", "w,w"}}, "w") == "w:29500 of 2 from VC_WORKER_HOSTS");
  CHECK(told({{"VC_WORKER_HOSTS", "w 0"}}).find("VC_WORKER_HOSTS: 'w 0'") == 0);
}

TEST_CASE("Slurm's variables must agree with each other") {
  CHECK(told(with(slurm, {{"SLURM_STEP_NODELIST", "gpu[03-04]"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_NNODES", "2"}})) ==
        "gpu03:15007 rank 1 of 2 from SLURM_STEP_NODELIST");
  CHECK(told({{"SLURM_JOB_NODELIST", "a,b"}}) == "a:29500 of 2 from SLURM_JOB_NODELIST");
  CHECK(told(with(slurm, {{"SLURM_NNODES", "3"}})) ==
        "SLURM_NNODES: 3 nodes, but SLURM_JOB_NODELIST names 4");
  CHECK(told(with(slurm, {{"SLURM_NODEID", "4"}})) ==
        "SLURM_NODEID: 4, but SLURM_JOB_NODELIST names 4 node(s)");
  CHECK(told(with(slurm, {{"SLURM_NODEID", "x"}})).find("SLURM_NODEID: 'x' is not") == 0);
  CHECK(told(with(slurm, {{"SLURM_JOB_NODELIST", "gpu[1-"}})).find("SLURM_JOB_NODELIST: '") == 0);
}

TEST_CASE("two of Slurm's tasks on a node are told how to be one") {
  const std::string remedy =
      ": Slurm has started 2 tasks on this node, and one launcher starts all "
      "workers of a node: use srun --ntasks-per-node=1 and say how many "
      "workers with --nproc-per-node";
  for (const auto* tasks : {"2(x2)", "1,2", "1(x3),2(x2)"})
    CHECK(told(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", tasks}})) ==
          "SLURM_STEP_TASKS_PER_NODE: '" + std::string(tasks) + "'" + remedy);
  for (const auto* tasks : {"1", "1(x4)", "1,1", "", "?"})
    CHECK(told(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", tasks}, {"SLURM_LOCALID", "0"}})) ==
          told(slurm));
  CHECK(told(with(slurm, {{"SLURM_LOCALID", "1"}})).find("SLURM_LOCALID: '1': Slurm has started") ==
        0);
  // A batch script may run one task of it in each step.
  CHECK(told(with(slurm, {{"SLURM_TASKS_PER_NODE", "8(x4)"}})) == told(slurm));
  // Jobs of their own, whatever is beside them.
  CHECK(met({}, with(slurm, {{"SLURM_LOCALID", "1"}})) == "alone");
  CHECK(met({"--nnodes=4", "--master-addr=x"}, with(slurm, {{"SLURM_LOCALID", "1"}})) ==
        "x:29500 from --master-addr, at the first node");
}

TEST_CASE("a pod's index is its node's rank if the job meets at the first pod of its Job") {
  const variables third{{"JOB_COMPLETION_INDEX", "2"}};
  const auto at = [&third](const std::string& variable, const std::string& address) {
    return with(third, {{variable, address}});
  };
  CHECK(met({"--nnodes=4"}, at("PET_MASTER_ADDR", "train-0.train"), "train-2") ==
        "train-0.train:29500 rank 2 from --master-addr, at the first node");
  CHECK(met({"--nnodes=4", "--master-addr=train-0.train"}, third, "train-2.train.ns.svc") ==
        "train-0.train:29500 rank 2 from --master-addr, at the first node");
  CHECK(met({"--nnodes=4"}, at("TROUPE_MASTER_ADDR", "train-0.train:7"), "train-2") ==
        "train-0.train:7 rank 2 from TROUPE_MASTER_ADDR");
  // What says the rank itself goes first.
  CHECK(met({"--nnodes=4", "--node-rank=1"}, at("PET_MASTER_ADDR", "train-0"), "train-2") ==
        "train-0:29500 rank 1 from --master-addr, at the first node");
  CHECK(met({"--nnodes=4"}, with(at("PET_MASTER_ADDR", "train-0"), {{"PET_NODE_RANK", "3"}}),
            "train-2") == "train-0:29500 rank 3 from --master-addr, at the first node");
  CHECK(met({"--nnodes=4"}, with(third, slurm), "train-2") ==
        "gpu01:15007 rank 2 from SLURM_JOB_NODELIST, at the first node");
  // Ranks by arrival: of another Job, of a JobSet with several, in a pod beyond the last node,
  // with a name or an index of its own, with c10d.
  for (const char* master : {"master", "train-1.train", "set-head-0-0.set", "0"})
    CHECK(met({"--nnodes=4"}, at("PET_MASTER_ADDR", master), "train-2").find("rank") ==
          std::string::npos);
  const auto here = at("PET_MASTER_ADDR", "train-0");
  CHECK(met({"--nnodes=2"}, here, "train-2").find("rank") == std::string::npos);
  for (const char* host : {"here", "train-12", "train2", "-2", "2"})
    CHECK(met({"--nnodes=4"}, here, host).find("rank") == std::string::npos);
  for (const char* index : {"", "x", "-2", "99999999999999999999"})
    CHECK(met({"--nnodes=4"}, with(here, {{"JOB_COMPLETION_INDEX", index}}), "train-2")
              .find("rank") == std::string::npos);
  CHECK(met({"--nnodes=4", "--rdzv-backend=c10d"}, here, "train-2").find("rank") ==
        std::string::npos);
  CHECK(met({}, third, "train-2") == "alone");
}

TEST_CASE("an option goes before any variable, and a job on one node needs neither") {
  const variables named{{"TROUPE_MASTER_ADDR", "head"}, {"PET_MASTER_ADDR", "pet"}};
  CHECK(met({"--nnodes=4"}, slurm) ==
        "gpu01:15007 rank 2 from SLURM_JOB_NODELIST, at the first node");
  CHECK(met({"--nnodes=4", "--master-port=9"}, slurm) ==
        "gpu01:9 rank 2 from SLURM_JOB_NODELIST, at the first node");
  CHECK(met({"--nnodes=4", "--node-rank=3"}, slurm) ==
        "gpu01:15007 rank 3 from SLURM_JOB_NODELIST, at the first node");
  CHECK(met({"--nnodes=4", "--master-addr=x"}, slurm) ==
        "x:29500 from --master-addr, at the first node");
  CHECK(met({"--nnodes=4", "--rdzv-endpoint=x"}, named) == "x:29400 from --rdzv-endpoint");
  CHECK(met({"--nnodes=4", "--rdzv-backend=c10d"}, slurm) == "gpu01:15007 from SLURM_JOB_NODELIST");
  CHECK(met({"--nnodes=2"}, {}) == "127.0.0.1:29500 from nothing says another, at the first node");
  CHECK(met({"--nnodes=2"}, {{"PET_MASTER_ADDR", "pet"}}) ==
        "pet:29500 from --master-addr, at the first node");
  CHECK(met({"--nnodes=2"}, named) == "head:29400 from TROUPE_MASTER_ADDR");
  CHECK(met({}, named) == "head:29400 from TROUPE_MASTER_ADDR");
  CHECK(met({"--standalone"}, named) == "alone");
  // torchrun in a Slurm allocation is one job for each node unless told otherwise, and so are we.
  CHECK(met({}, slurm) == "alone");
  CHECK(met({}, volcano) == "alone");
  CHECK(met({}, with(slurm, {{"SLURM_NODEID", "x"}})) == "alone");
}

TEST_CASE("a job of one node that a worker starts is its own, whatever the outer job's pod says") {
  const variables pod{{"DLROVER_MASTER_ADDR", "outer:50001"}, {"PET_MASTER_ADDR", "pet"}};
  const auto inside = with(pod, {{"TORCHELASTIC_RUN_ID", "outer"}});
  CHECK(met({}, pod) == "outer:50001 from DLROVER_MASTER_ADDR");
  CHECK(met({}, inside) == "alone");
  CHECK(met({"--nnodes=1", "--nproc-per-node=2"}, inside) == "alone");
  CHECK(met({"--rdzv-backend=c10d"}, inside) == "localhost:29400 from nothing says another");
  CHECK(met({"--rdzv-endpoint=x"}, inside) == "x:29400 from --rdzv-endpoint");
  CHECK(met({"--nnodes=2"}, inside) == "outer:50001 from DLROVER_MASTER_ADDR");
}

TEST_CASE("the number of nodes is taken from the scheduler environment when that is asked for") {
  CHECK(launched({"--nnodes=auto"}, slurm).nodes_max == 4);
  const auto found = launched({"--nnodes=auto"}, volcano, "job-worker-1").rendezvous;
  CHECK(found.node_rank == 2u);
  CHECK(found.node_rank_is_found);
  CHECK_FALSE(launched({"--nnodes=auto", "--node-rank=1"}, volcano, "job-worker-1")
                  .rendezvous.node_rank_is_found);
  const auto nowhere = parse_launcher({"--nnodes=auto", "t.py"}, {});
  REQUIRE(std::holds_alternative<refusal>(nowhere));
  CHECK(std::get<refusal>(nowhere).what.find("--nnodes auto: neither Slurm's") == 0);
  machine_facts machine;
  machine.environment = slurm;
  const auto too_few = parse_launcher({"--nnodes=2", "t.py"}, machine);
  REQUIRE(std::holds_alternative<refusal>(too_few));
  CHECK(std::get<refusal>(too_few).what ==
        "--node-rank 2 does not exist among 2 node(s) (--nnodes); from SLURM_JOB_NODELIST");
}

TEST_CASE("a token comes from an option or one of two variables, and never with certificates") {
  const auto common = [](std::vector<std::string> arguments, const variables& environment) {
    const auto o = launched(std::move(arguments), environment).common;
    return o.token_file + "|" + o.token;
  };
  CHECK(common({}, {}) == "|");
  CHECK(common({"--token-file=f"}, {{"TROUPE_TOKEN", "t"}}) == "f|");
  CHECK(common({}, {{"TROUPE_TOKEN", "t"}}) == "|t");
  CHECK(common({}, {{"TROUPE_TOKEN_FILE", "g"}, {"TROUPE_TOKEN", ""}}) == "g|");
  const std::vector<std::string> certified{"--certificate=c", "--key=k", "--authority=a"};
  CHECK(common(certified, {{"TROUPE_TOKEN", "t"}}) == "|");
  const auto error_text = [](std::vector<std::string> arguments, const variables& environment) {
    machine_facts machine;
    machine.environment = environment;
    arguments.emplace_back("t.py");
    const auto parsed = parse_launcher(arguments, machine);
    REQUIRE(std::holds_alternative<refusal>(parsed));
    return std::get<refusal>(parsed).what;
  };
  auto both = certified;
  both.emplace_back("--token-file=f");
  CHECK(error_text(both, {}).find("exclude each other") != std::string::npos);
  CHECK(error_text({"--crl=r"}, {}).find("--crl revokes certificates") != std::string::npos);
  CHECK(error_text({}, {{"TROUPE_TOKEN", "t"}, {"TROUPE_TOKEN_FILE", "f"}}).find("both set") !=
        std::string::npos);
}
