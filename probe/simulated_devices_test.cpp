#include "probe/simulated_devices.hpp"

#include "probe/limits.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::probe;

TEST_SUITE("simulated devices") {
  const misbehaves never = [](misbehaviour) { FAIL("a device that works has misbehaved"); };

  std::unique_ptr<device_port> made(const std::string& json, misbehaves misbehave = never) {
    auto devices = simulated_devices(json, std::move(misbehave));
    if (!devices)
      FAIL(devices.error().what);
    return std::move(*devices);
  }
  std::string refused(const std::string& json) {
    const auto devices = simulated_devices(json, never);
    REQUIRE(!devices);
    CHECK(devices.error().code == errc::invalid);
    return devices.error().what;
  }

  TEST_CASE("what is not said is as of a device that works") {
    const auto devices = made(R"({"devices": [{}, {"name": "b", "copies": 2}]})");
    CHECK(devices->has_accelerators());
    const auto all = devices->list();
    REQUIRE(all);
    REQUIRE(all->size() == 3);
    CHECK((*all)[0].name == "simulated");
    CHECK((*all)[0].memory_bytes == std::uint64_t{80} << 30);
    CHECK((*all)[0].memory_used_bytes == 0);
    CHECK((*all)[2].name == "b");
    CHECK((*all)[2].index == 2);
    const auto work = devices->compute(1);
    REQUIRE(work);
    CHECK(work->took == 40ms);
    CHECK(work->gigaflops == 600'000);
    CHECK(devices->collectives().empty());
  }

  TEST_CASE("a device does what its description says") {
    const auto devices = made(R"({"devices": [
      {"memory_mib": 1000, "used_mib": 300, "compute_ms": 90, "gigaflops": 7, "health": "worn"},
      {"failed": "its products are wrong"}], "collectives": "NCCL 2.27.3"})");
    const auto all = devices->list();
    CHECK((*all)[0].memory_bytes == 1000u << 20);
    CHECK((*all)[0].memory_used_bytes == 300u << 20);
    CHECK((*all)[0].health == "worn");
    CHECK(devices->compute(0)->took == 90ms);
    CHECK(devices->compute(1).error().what == "its products are wrong");
    CHECK(devices->collectives() == "NCCL 2.27.3");
  }

  TEST_CASE("pairs, in both directions") {
    const auto devices = made(R"({"devices": [{"copies": 4}], "pairs": [
      {"first": 1, "second": 0, "bandwidth": 20000, "back": 9, "channels": 3},
      {"first": 2, "second": 3, "bandwidth": 5},
      {"first": 0, "second": 3, "failed": "no access"}]})");
    CHECK(devices->copy_bandwidth(1, 0) == 20'000u);
    CHECK(devices->copy_bandwidth(0, 1) == 9u);
    CHECK(devices->channels(0, 1) == 3u);
    CHECK(devices->copy_bandwidth(3, 2) == 5u);
    CHECK(devices->copy_bandwidth(3, 0).error().what == "no access");
    CHECK(devices->copy_bandwidth(0, 2).error().what == "there is no link between them");
    CHECK(devices->channels(0, 2) == 0u);
  }

  TEST_CASE("a group of simulated devices, which have no others to wait for") {
    const auto of = [](const std::string& more) {
      return made(R"({"devices": [{}], "collectives": "NCCL 2.27.3")" + more + "}");
    };
    const auto devices = of("");
    const auto key = devices->make_group_key();
    REQUIRE(key);
    const auto group = devices->join_group(*key, {1, 0, 2, 4'000'000});
    REQUIRE(group);
    CHECK((*group)->all_reduce(4'000'000, 3) == 100us);
    CHECK((*group)->all_gather(4, 3) == 0us);
    CHECK(devices->join_group("NCCL's", {}).error().what ==
          "the other devices of the group are not simulated");
    const auto slow = of(R"(, "group_bandwidth": 4)");
    CHECK((*slow->join_group(*key, {}))->all_gather(4'000'000, 3) == 1s);
    CHECK(of(R"(, "group_failed": "no route")")->join_group(*key, {}).error().what == "no route");
    CHECK(refused(R"({"group_does": "sleep"})") ==
          "line 1: 'group_does' of the description of devices is 'sleep'; hang and crash are "
          "possible");
    std::vector<misbehaviour> seen;
    const auto crashing = made(R"({"devices": [{}], "group_does": "crash"})",
                               [&](misbehaviour what) { seen.push_back(what); });
    (void)(*crashing->join_group(*key, {}))->all_reduce(4, 1);
    CHECK(seen == std::vector{misbehaviour::crash});
  }

  TEST_CASE("devices that hang and crash, and a driver that is not there") {
    std::vector<misbehaviour> seen;
    const auto devices = made(R"({"devices": [{"does": "crash"}, {"does": "hang"}]})",
                              [&](misbehaviour what) { seen.push_back(what); });
    (void)devices->compute(1);
    (void)devices->compute(0);
    CHECK(seen == std::vector{misbehaviour::hang, misbehaviour::crash});
    CHECK(made(R"({"driver": "no driver"})")->list().error().what == "no driver");
    CHECK(made("{}")->list()->empty());
  }

  TEST_CASE("a malformed file is told with its line") {
    CHECK(refused("").find("line 1: is no JSON: ") == 0);
    CHECK(refused("[]") == "line 1: the description of devices is no object");
    CHECK(refused("{\n\"devices\": 7}") ==
          "line 2: 'devices' of the description of devices is no list");
    CHECK(refused("{\"devices\": [\n7]}") == "line 2: a device is no object");
    CHECK(refused("{\"devices\": [\n\n{\"nam\": \"x\"}]}") ==
          "line 3: a device has no member 'nam'");
    CHECK(refused("{\"device\":\n[]}") ==
          "line 2: the description of devices has no member 'device'");
    CHECK(refused("{\"devices\": [{\n\"name\": 7}]}") == "line 2: 'name' of a device is no text");
    CHECK(refused("{\"devices\": [{\"memory_mib\": -1}]}") ==
          "line 1: 'memory_mib' of a device is -1; 0 to 1073741824 are possible");
    CHECK(refused("{\"devices\": [{\"memory_mib\": 1.5}]}") ==
          "line 1: 'memory_mib' of a device is no whole number");
    CHECK(refused("{\"devices\": [{\"memory_mib\": 9,\n\"used_mib\": 10}]}") ==
          "line 2: a device has more memory in use than it has");
    CHECK(refused("{\"devices\": [{\"does\": \"sleep\"}]}") ==
          "line 1: 'does' of a device is 'sleep'; hang and crash are possible");
    CHECK(refused("{\"devices\": [{\"copies\": 0}]}") ==
          "line 1: 'copies' of a device is 0; 1 to 64 are possible");
    CHECK(refused("{\"devices\": [{\"copies\": 64},\n{}]}") == "line 2: more than 64 devices");
    CHECK(
        refused("{\"devices\": [{\"copies\": 2}],\n\"pairs\": [{\"first\": 0, \"second\": 2}]}") ==
        "line 2: 'second' of a pair is 2; 0 to 1 are possible");
    CHECK(
        refused("{\"devices\": [{\"copies\": 2}],\n\"pairs\": [{\"first\": 1, \"second\": 1}]}") ==
        "line 2: a pair is of two devices");
    CHECK(refused("{\"pairs\": [{\"first\": 0, \"second\": 1}]}") ==
          "line 1: a pair takes two devices");
    CHECK(refused(std::string(limits::simulated_devices_text_max + 1, ' ')) ==
          "it has 1048577 bytes; 1048576 are allowed");
  }
}
