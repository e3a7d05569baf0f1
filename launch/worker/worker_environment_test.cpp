#include "launch/worker/worker_environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::launch;

namespace {

actors::assignment third_of_four() {
  actors::assignment a;
  a.which = generation{5};
  a.restart_count = 2;
  a.local = 1;
  a.rank = 3;
  a.local_world_size = 2;
  a.world_size = 4;
  a.role_rank = 1;
  a.role_world_size = 2;
  a.group_rank = 1;
  a.group_world_size = 2;
  a.store_address = "10.0.0.1";
  a.store_port = 4711;
  return a;
}

worker_contract contract() {
  worker_contract c;
  c.job = "job";
  c.max_restarts = 3;
  c.command = {"train.py", "--rank=${local_rank}", "$x"};
  c.output.run_directory = "/logs/job_x";
  c.environment = {{"HOME", "/root"}, {"RANK", "stale"}};
  return c;
}

std::string variable(const ports::process_spec& s, const std::string& name) {
  for (const auto& entry : s.environment)
    if (entry.compare(0, name.size() + 1, name + "=") == 0)
      return entry.substr(name.size() + 1);
  return "<unset>";
}

} // namespace

TEST_CASE("a worker inherits its own local rank's memory for images, and the first one's") {
  auto c = contract();
  c.environment["TROUPE_CHECKPOINT_MEMORY"] = "3,4";
  c.environment["TROUPE_CHECKPOINT_MEMORY_OF_NODE"] = "5,6";
  c.environment["TROUPE_CHECKPOINT_MEMORY_OF_OTHERS"] = "7,8";
  c.environment["TROUPE_COPIES_ADDRESS"] = "elsewhere:1";
  c.checkpoint_memory = {{10, 11, 98, 99}, {20, 21, 98, 99}};
  auto place = third_of_four();
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY") == "20,21,98,99");
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY_OF_NODE") == "10,11,98,99");
  CHECK(worker_spec(c, place).descriptors == std::vector<int>{20, 21, 98, 99, 10, 11});
  place.local = 0;
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY_OF_NODE") == "<unset>");
  CHECK(worker_spec(c, place).descriptors == std::vector<int>{10, 11, 98, 99});
  place.local = 2;
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY") == "<unset>");
  CHECK(worker_spec(c, place).descriptors.empty());
}

TEST_CASE("a worker inherits memory for others' images, where this node takes any") {
  auto c = contract();
  c.checkpoint_memory = {{10, 11, 98, 99}, {20, 21, 98, 99}};
  c.memory_for_others = {{30, 31, 98, 99}, {40, 41, 98, 99}};
  auto place = third_of_four();
  place.address = "10.0.0.2";
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY_OF_OTHERS") == "<unset>");
  CHECK(variable(worker_spec(c, place), "TROUPE_COPIES_ADDRESS") == "<unset>");
  c.copies_port = 4713;
  CHECK(variable(worker_spec(c, place), "TROUPE_CHECKPOINT_MEMORY_OF_OTHERS") == "40,41,98,99");
  CHECK(variable(worker_spec(c, place), "TROUPE_COPIES_ADDRESS") == "10.0.0.2:4713");
  CHECK(worker_spec(c, place).descriptors == std::vector<int>{20, 21, 98, 99, 10, 11, 40, 41});
}

TEST_CASE("a worker inherits the page of its own progress, and no other launcher's") {
  auto c = contract();
  c.environment["TROUPE_PROGRESS_FD"] = "3";
  c.environment["TROUPE_CHANNEL"] = "@outer";
  c.environment["TROUPE_KEEPER"] = "7";
  auto place = third_of_four();
  const auto without = worker_spec(c, place);
  for (const auto* name : {"TROUPE_PROGRESS_FD", "TROUPE_CHANNEL", "TROUPE_KEEPER"})
    CHECK(variable(without, name) == "<unset>");
  c.progress_memory = {50, 51};
  c.channel = "@ours";
  c.keeper = 4711;
  CHECK(variable(worker_spec(c, place), "TROUPE_KEEPER") == "4711");
  CHECK(variable(worker_spec(c, place), "TROUPE_PROGRESS_FD") == "51");
  CHECK(variable(worker_spec(c, place), "TROUPE_CHANNEL") == "@ours");
  CHECK(worker_spec(c, place).descriptors == std::vector<int>{51});
  place.local = 2;
  CHECK(variable(worker_spec(c, place), "TROUPE_PROGRESS_FD") == "<unset>");
}

TEST_CASE("hooks stand before the modules that the user has put there") {
  auto c = contract();
  c.environment.erase("PYTHONPATH");
  const auto place = third_of_four();
  CHECK(variable(worker_spec(c, place), "PYTHONPATH") == "<unset>");
  c.hooks = "/troupe/hooks";
  CHECK(variable(worker_spec(c, place), "PYTHONPATH") == "/troupe/hooks");
  CHECK(variable(worker_spec(c, place), "TROUPE_HOOKS") == "1");
  c.environment["PYTHONPATH"] = "/mine:/others";
  CHECK(variable(worker_spec(c, place), "PYTHONPATH") == "/troupe/hooks:/mine:/others");
  c.environment["TROUPE_HOOKS"] = "debug";
  CHECK(variable(worker_spec(c, place), "TROUPE_HOOKS") == "debug");
  CHECK(variable(worker_spec(c, place), "PYTHONPATH") == "/troupe/hooks:/mine:/others");
  c.environment["TROUPE_HOOKS"] = "0";
  CHECK(variable(worker_spec(c, place), "TROUPE_HOOKS") == "0");
  CHECK(variable(worker_spec(c, place), "PYTHONPATH") == "/mine:/others");
}

TEST_CASE("the tracing library stands before what the user has preloaded") {
  auto c = contract();
  const auto place = third_of_four();
  c.environment.erase("LD_PRELOAD");
  CHECK(variable(worker_spec(c, place), "LD_PRELOAD") == "<unset>");
  c.trace_library = "/lib/trace.so";
  c.trace_directory = "/run/trace";
  CHECK(variable(worker_spec(c, place), "LD_PRELOAD") == "/lib/trace.so");
  CHECK(variable(worker_spec(c, place), "TROUPE_TRACE_DIR") == "/run/trace");
  c.environment["LD_PRELOAD"] = "/mine.so";
  c.environment["TROUPE_TRACE_DIR"] = "/mine";
  CHECK(variable(worker_spec(c, place), "LD_PRELOAD") == "/lib/trace.so:/mine.so");
  CHECK(variable(worker_spec(c, place), "TROUPE_TRACE_DIR") == "/mine");
}

TEST_CASE("a worker finds its place in the job in its environment") {
  const auto s = worker_spec(contract(), third_of_four());
  CHECK(variable(s, "RANK") == "3");
  CHECK(variable(s, "LOCAL_RANK") == "1");
  CHECK(variable(s, "WORLD_SIZE") == "4");
  CHECK(variable(s, "LOCAL_WORLD_SIZE") == "2");
  CHECK(variable(s, "GROUP_RANK") == "1");
  CHECK(variable(s, "GROUP_WORLD_SIZE") == "2");
  CHECK(variable(s, "ROLE_RANK") == "1");
  CHECK(variable(s, "ROLE_WORLD_SIZE") == "2");
  CHECK(variable(s, "MASTER_ADDR") == "10.0.0.1");
  CHECK(variable(s, "MASTER_PORT") == "4711");
  CHECK(variable(s, "TORCHELASTIC_RESTART_COUNT") == "2");
  CHECK(variable(s, "TORCHELASTIC_MAX_RESTARTS") == "3");
  CHECK(variable(s, "TORCHELASTIC_USE_AGENT_STORE") == "False");
  auto with_store = third_of_four();
  with_store.store_hosted = true;
  CHECK(variable(worker_spec(contract(), with_store), "TORCHELASTIC_USE_AGENT_STORE") == "True");
  CHECK(variable(s, "TORCHELASTIC_ERROR_FILE") == "/logs/job_x/attempt_2/1/error.json");
  CHECK(variable(s, "HOME") == "/root");
}

TEST_CASE(
    "a link-local address is reached by this machine's interface, whatever it is called there") {
  auto there = third_of_four();
  auto c = contract();
  const auto seen = [&] { return variable(worker_spec(c, there), "MASTER_ADDR"); };
  there.store_address = "fe80::1%eth0";
  CHECK(seen() == "fe80::1%eth0");
  c.zone = "ib1";
  CHECK(seen() == "fe80::1%ib1");
  there.store_address = "10.0.0.1";
  CHECK(seen() == "10.0.0.1");
  CHECK(zone_towards("fe80::2%ib1", "fe80::1%eth0") == "ib1");
  CHECK(zone_towards("10.0.0.2", "fe80::1%eth0") == "eth0");
  CHECK(zone_towards("10.0.0.2", "head") == "");
}

TEST_CASE("threads are limited only where the options say so and the user has not said otherwise") {
  auto c = contract();
  CHECK(variable(worker_spec(c, third_of_four()), "OMP_NUM_THREADS") == "<unset>");
  c.omp_threads = 1;
  CHECK(variable(worker_spec(c, third_of_four()), "OMP_NUM_THREADS") == "1");
  c.environment["OMP_NUM_THREADS"] = "6";
  CHECK(variable(worker_spec(c, third_of_four()), "OMP_NUM_THREADS") == "6");
}

TEST_CASE("with virtual local ranks every worker is number 0 of the one device it sees") {
  auto c = contract();
  c.virtual_local_rank = true;
  CHECK(variable(worker_spec(c, third_of_four()), "LOCAL_RANK") == "0");
  CHECK(variable(worker_spec(c, third_of_four()), "CUDA_VISIBLE_DEVICES") == "1");
  c.environment["CUDA_VISIBLE_DEVICES"] = "4, GPU-7";
  CHECK(variable(worker_spec(c, third_of_four()), "CUDA_VISIBLE_DEVICES") == "GPU-7");
  CHECK_FALSE(contract_validation_error(c, 2));
  CHECK(contract_validation_error(c, 3));
  c.virtual_local_rank = false;
  CHECK_FALSE(contract_validation_error(c, 3));
}

TEST_CASE("with --virtual-local-rank the vendor's own variable selects the device") {
  auto c = contract();
  c.virtual_local_rank = true;
  c.visible_variable = "ASCEND_RT_VISIBLE_DEVICES";
  c.environment["ASCEND_RT_VISIBLE_DEVICES"] = "4,7";
  CHECK(variable(worker_spec(c, third_of_four()), "ASCEND_RT_VISIBLE_DEVICES") == "7");
  CHECK(contract_validation_error(c, 3) ==
        "--virtual-local-rank: ASCEND_RT_VISIBLE_DEVICES=4,7 names fewer devices than there are "
        "workers (3)");
}

TEST_CASE("Ascend's workers are told the first port of HCCL's, all of a node the same") {
  auto c = contract();
  c.environment["HCCL_IF_BASE_PORT"] = "64000";
  CHECK(variable(worker_spec(c, third_of_four()), "HCCL_IF_BASE_PORT") == "64000");
  c.hccl_port = 60'002;
  CHECK(variable(worker_spec(c, third_of_four()), "HCCL_IF_BASE_PORT") == "60002");
}

TEST_CASE("workers are told which signals are handled") {
  auto c = contract();
  CHECK(variable(worker_spec(c, third_of_four()), "TORCHELASTIC_SIGNALS_TO_HANDLE") ==
        "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  c.signals = "SIGUSR1";
  CHECK(variable(worker_spec(c, third_of_four()), "TORCHELASTIC_SIGNALS_TO_HANDLE") == "SIGUSR1");
}

TEST_CASE("the command is the interpreter, unbuffered, with the local rank put in") {
  auto c = contract();
  CHECK(worker_spec(c, third_of_four()).argv ==
        std::vector<std::string>{"python3", "-u", "train.py", "--rank=1", "$x"});
  c.module = true;
  c.python = "/opt/python";
  CHECK(worker_spec(c, third_of_four()).argv ==
        std::vector<std::string>{"/opt/python", "-u", "-m", "train.py", "--rank=1", "$x"});
  c.module = false;
  c.no_python = true;
  c.command.front() = "${local_rank}.sh";
  CHECK(worker_spec(c, third_of_four()).argv ==
        std::vector<std::string>{"${local_rank}.sh", "--rank=1", "$x"});
  c.run_path = true;
  CHECK(worker_spec(c, third_of_four()).argv.front() == "/opt/python");
  CHECK(worker_spec(c, third_of_four()).argv[4] == "1.sh");
  c.cpus = {"0-3", "4-7,12"};
  CHECK(worker_spec(c, third_of_four()).argv[1] == "--physcpubind=4-7,12");
}

TEST_CASE("only redirected streams have files, and none have if the user wants none") {
  auto c = contract();
  CHECK(worker_spec(c, third_of_four()).stdout_file.empty());
  c.output.streams.redirects.everyone = {true, true};
  CHECK(worker_spec(c, third_of_four()).stdout_file == "/logs/job_x/attempt_2/1/stdout.log");
  CHECK(worker_spec(c, third_of_four()).stderr_file == "/logs/job_x/attempt_2/1/stderr.log");
  c.output.streams.redirects.everyone = {false, true};
  CHECK(worker_spec(c, third_of_four()).stdout_file.empty());
  c.output.run_directory.clear();
  CHECK(worker_spec(c, third_of_four()).stderr_file.empty());
  CHECK(variable(worker_spec(c, third_of_four()), "TORCHELASTIC_ERROR_FILE").empty());
}

TEST_CASE("ranks by the network: under the names that scripts expect, where they were asked for") {
  auto c = contract();
  auto place = third_of_four();
  place.master_index = 3;
  CHECK(variable(worker_spec(c, place), "RANK_AFTER_ACC") == "<unset>");
  c.tells_rank_after_topology = true;
  CHECK(variable(worker_spec(c, place), "RANK_AFTER_ACC") == "1");
  CHECK(variable(worker_spec(c, place), "MASTER_INDEX") == "3");
}
