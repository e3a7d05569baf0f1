#include "launch/doctor/python.hpp"

#include "launch/doctor/ask.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace troupe;
using namespace troupe::launch::doctor;

namespace {

constexpr auto all_is_well = "troupe-doctor:version=3.11.2\n"
                             "a word of sitecustomize\n"
                             "troupe-doctor:troupe=1\n"
                             "troupe-doctor:seconds=3.2\n"
                             "troupe-doctor:distributed=1\n"
                             "troupe-doctor:gloo=1\n"
                             "troupe-doctor:nccl=1\n"
                             "troupe-doctor:built_for=12.8\n"
                             "troupe-doctor:devices=8\n"
                             "troupe-doctor:torch=2.13.0+cu128\n";

python_facts answered(const std::string& output) {
  python_facts seen;
  seen.chosen = {"/env/bin/python3", "PATH"};
  take_answer(seen, output);
  return seen;
}

finding about(const python_facts& seen, std::size_t which) {
  return judge(seen).at(which);
}
constexpr std::size_t interpreter = 0, torch = 1, gpus = 2;

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

} // namespace

TEST_SUITE("doctor: python") {
  TEST_CASE("what an interpreter says of itself, among what else it prints") {
    auto seen = answered(all_is_well);
    seen.gpus = 8;
    seen.workers = 8;
    seen.driver = "570.86.10";
    CHECK(about(seen, interpreter).found == "/env/bin/python3 (PATH), Python 3.11.2");
    CHECK(about(seen, torch).how == grade::ok);
    CHECK(about(seen, torch).found == "2.13.0+cu128, gloo and NCCL, imported in 3.2 s");
    CHECK(about(seen, gpus).how == grade::ok);
    CHECK(about(seen, gpus).found == "8 in /dev, driver 570.86.10, 8 for torch");
  }

  TEST_CASE("an interpreter that does not run, and one without torch") {
    auto none = answered("");
    none.failed = "No such file or directory";
    CHECK(judge(none).size() == 2);
    CHECK(about(none, interpreter).how == grade::error);
    CHECK(about(answered("Illegal instruction\n"), interpreter).found ==
          "/env/bin/python3 (PATH) does not run: Illegal instruction");
    const auto bare = answered("troupe-doctor:version=3.9.2\n"
                               "troupe-doctor:torch_error=ModuleNotFoundError: No module named "
                               "'torch'\n");
    CHECK(about(bare, interpreter).how == grade::ok);
    CHECK(about(bare, torch).how == grade::error);
    CHECK(mentions(about(bare, torch).found, "No module named 'torch'"));
    CHECK(mentions(about(bare, torch).remedy, "/env/bin/python3 -m pip install torch"));
  }

  TEST_CASE("a torch that ends the interpreter is told by its last words") {
    const auto seen = answered("troupe-doctor:version=3.9.2\nfoo\nterminate called\n\n");
    CHECK(mentions(about(seen, torch).found, "terminate called"));
  }

  TEST_CASE("a slow import is told, one without an end is warned of") {
    auto seen = answered(all_is_well);
    seen.import_seconds = 15.1;
    CHECK(about(seen, torch).how == grade::note);
    auto endless = answered("troupe-doctor:version=3.9.2\n");
    endless.in_time = false;
    CHECK(about(endless, torch).how == grade::warning);
    CHECK(mentions(about(endless, torch).found, "60.0 s"));
  }

  TEST_CASE("builds of torch that lack something, and no package troupe") {
    auto seen = answered(all_is_well);
    seen.troupe = false;
    CHECK(about(seen, torch).how == grade::note);
    seen.distributed = false;
    CHECK(about(seen, torch).how == grade::error);
    CHECK(mentions(about(seen, torch).found, "no torch.distributed"));
  }

  TEST_CASE("another project's distribution of the same name, beside ours and alone") {
    CHECK(judge(answered(all_is_well)).size() == 3);
    auto seen = answered(std::string(all_is_well) + "troupe-doctor:other_troupe=0.1.0\n");
    constexpr std::size_t package = 3;
    CHECK(about(seen, package).how == grade::warning);
    CHECK(mentions(about(seen, package).found, "troupe 0.1.0 of another project"));
    CHECK(mentions(about(seen, package).remedy, "/env/bin/python3 -m pip uninstall troupe"));
    seen.troupe = false;
    CHECK(about(seen, package).how == grade::note);
    CHECK_FALSE(mentions(about(seen, package).found, "beside actor-launcher"));
  }

  TEST_CASE("the active environment is another one") {
    auto seen = answered(all_is_well);
    seen.others.active = "/env/bin/python3";
    CHECK(about(seen, interpreter).how == grade::ok);
    seen.others.active = "/other/bin/python3";
    CHECK(about(seen, interpreter).how == grade::note);
  }

  TEST_CASE("GPUs: none, none for torch, too few, no NCCL") {
    auto seen = answered(all_is_well);
    seen.devices = 0;
    CHECK(about(seen, gpus).found == "none");
    CHECK(about(seen, gpus).how == grade::ok);
    seen.gpus = 2;
    CHECK(about(seen, gpus).how == grade::warning);
    CHECK(mentions(about(seen, gpus).costs, "CUDA 12.8"));
    seen.built_for = "";
    CHECK(mentions(about(seen, gpus).costs, "a build for CPUs"));
    seen.devices = 2;
    seen.workers = 2;
    CHECK(about(seen, gpus).how == grade::ok);
    seen.workers = 3;
    CHECK(about(seen, gpus).how == grade::warning);
    seen.workers = 2;
    seen.nccl = false;
    CHECK(about(seen, gpus).how == grade::warning);
  }

  TEST_CASE("a program of its own needs no interpreter") {
    python_facts seen;
    seen.wanted = false;
    CHECK(about(seen, interpreter).how == grade::ok);
  }

  TEST_CASE("the command") {
    CHECK(judge(command_facts{}).how == grade::ok);
    CHECK(judge(command_facts{"train.py", ""}).found == "train.py can be started");
    CHECK(judge(command_facts{"train.py", "script 'train.py' does not exist"}).how == grade::error);
  }

  TEST_CASE("a program is asked: what it prints, in both streams, and within its time") {
    const auto said = ask({"sh", "-c", "echo out; echo err >&2; kill -PIPE $$"}, 60s);
    REQUIRE(said);
    CHECK(said->output == "out\nerr\n");
    CHECK(said->in_time);
    CHECK_FALSE(ask({"/no/such/program"}, 60s));
    const auto began = std::chrono::steady_clock::now();
    const auto late = ask({"sh", "-c", "echo begun; sleep 600 & wait"}, 1s);
    REQUIRE(late);
    CHECK(late->output == "begun\n");
    CHECK_FALSE(late->in_time);
    CHECK(std::chrono::steady_clock::now() - began < 60s);
  }
}
