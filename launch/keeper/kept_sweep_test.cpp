#include "launch/keeper/limits.hpp"
#include "tests/process/kept_world.hpp"

#include <filesystem>

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("what is left is asked to end, and has the order's time") {
  const scratch place;
  real_world world;
  const std::string saves = "trap 'sleep 0.2; touch " + (place / "saved") + "; exit' TERM; touch " +
                            (place / "ready") + "; while :; do sleep 0.01; done";
  CHECK(world.run(shell("setsid -f sh -c \"" + saves + "\"")).success());
  REQUIRE(world.until([&] { return std::filesystem::exists(place / "ready"); }));
  const auto what = world.sweep({0s, 30s});
  CHECK(what.killed == 0);
  CHECK(what.ended == 1);
  CHECK(std::filesystem::exists(place / "saved"));
  CHECK(descendants().empty());
}

TEST_CASE("what got the signal with its worker is not asked a second time") {
  const scratch place;
  real_world world;
  const std::string saves = "trap 'echo TERM >> " + (place / "heard") + "' TERM; touch " +
                            (place / "ready") + "; until [ -s " + (place / "heard") +
                            " ]; do sleep 0.01; done; sleep 0.3";
  std::promise<ports::exit_status> end;
  // The shell of the script ends at the signal, and what is below it does not.
  const auto one = world.host().start(shell("sh -c \"" + saves + "\"; true"),
                                      [&end](ports::exit_status status) { end.set_value(status); });
  REQUIRE(one);
  REQUIRE(world.until([&] { return std::filesystem::exists(place / "ready"); }));
  world.host().signal(one->process, SIGTERM);
  CHECK(end.get_future().get().code() == -SIGTERM);
  const auto what = world.sweep({0s, 30s});
  CHECK(what.killed + what.ended == 0);
  CHECK(content(place / "heard") == "TERM\n");
  CHECK(descendants().empty());
}

TEST_CASE("what is deaf is told of, and killed when its time is over") {
  const scratch place;
  real_world world;
  const std::string deaf =
      "trap '' TERM; touch " + (place / "ready") + "; while :; do sleep 1; done";
  CHECK(world.run(shell("setsid -f sh -c \"" + deaf + "\"")).success());
  REQUIRE(world.until([&] { return std::filesystem::exists(place / "ready"); }));
  std::promise<ports::left_behind> waits;
  std::promise<ports::swept> done;
  world.host().sweep(
      {0s, limits::left_told_after + 100ms}, [&waits](const auto& left) { waits.set_value(left); },
      [&done](const auto& what) { done.set_value(what); });
  const auto left = waits.get_future().get();
  CHECK(left.processes.find("sh (pid ") == 0);
  CHECK(left.count == 1);
  CHECK(done.get_future().get().killed >= 1); // with the `sleep` below it
  CHECK(descendants().empty());
}

TEST_CASE("left alone at first, what is left may finish its work") {
  const scratch place;
  real_world world;
  CHECK(world.run(shell("setsid -f sh -c 'sleep 0.3; touch " + (place / "sent") + "'")).success());
  const auto what = world.sweep({30s, 30s});
  CHECK(what.killed + what.ended == 0);
  CHECK(std::filesystem::exists(place / "sent"));
}

TEST_CASE("a sweep neither asks PyTorch's shared-memory manager nor waits for it") {
  const scratch place;
  real_world world;
  const std::string manager = place / "torch_shm_manager";
  std::filesystem::copy_file("/bin/sleep", manager);
  CHECK(world.run(shell("setsid -f " + manager + " 1000")).success());
  // Before it is executed it is another program's.
  REQUIRE(world.until([] {
    const auto all = descendants();
    return all.size() == 1 &&
           content("/proc/" + std::to_string(all.front()) + "/comm") == "torch_shm_manag\n";
  }));
  const auto what = world.sweep({0s, 30s});
  CHECK(what.killed + what.ended == 0);
  CHECK(world.alive() == 1);
}
