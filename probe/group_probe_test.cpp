#include "probe/group_probe.hpp"

#include "probe/limits.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::probe;
using messages::DevicesProbeWanted;

namespace {

/// Devices of which one thing may not work: "list", "key", "join", "reduce", "gather".
class few_devices final : public device_port {
 public:
  explicit few_devices(std::string broken = {}) : broken_(std::move(broken)) {}

  bool has_accelerators() const override { return true; }
  result<std::vector<device_facts>> list() override {
    if (broken_ == "list")
      return failure(errc::refused, "no driver");
    return std::vector<device_facts>(2);
  }
  result<computed> compute(std::uint32_t) override { return computed{}; }
  result<std::uint64_t> copy_bandwidth(std::uint32_t, std::uint32_t) override { return 0; }
  result<std::uint32_t> channels(std::uint32_t, std::uint32_t) override { return 0; }
  std::string collectives() override { return "NCCL 2.27.3"; }
  result<std::string> make_group_key() override {
    if (broken_ == "key")
      return failure(errc::refused, "no network");
    return std::string("made");
  }
  result<std::unique_ptr<device_group>> join_group(const std::string& key,
                                                   const group_place& place) override {
    joined_with = key;
    joined_at = place;
    if (broken_ == "join")
      return failure(errc::refused, "no\nroute");
    return std::unique_ptr<device_group>(std::make_unique<group>(broken_));
  }

  std::string joined_with;
  group_place joined_at;

 private:
  class group final : public device_group {
   public:
    explicit group(std::string broken) : broken_(std::move(broken)) {}
    result<duration> all_reduce(std::uint64_t bytes, std::uint32_t) override {
      if (broken_ == "reduce")
        return failure(errc::refused, wrong_values("all-reduce", bytes));
      return std::chrono::microseconds(bytes);
    }
    result<duration> all_gather(std::uint64_t bytes, std::uint32_t) override {
      if (broken_ == "gather")
        return failure(errc::refused, "lost");
      return std::chrono::nanoseconds(bytes);
    }

   private:
    const std::string broken_;
  };

  const std::string broken_;
};

messages::msg<DevicesProbeWanted> wanted(const std::string& key, std::uint32_t devices = 2) {
  return messages::local<DevicesProbeWanted>("network_prober", [&](auto to) {
    auto g = to.initGroup();
    g.setCheck(7);
    g.setRound(2);
    g.setGroup(3);
    g.setDevices(devices);
    g.setFirstRank(4);
    g.setRanks(8);
    g.setRepeats(10);
    auto sizes = g.initSizes(2);
    sizes.set(0, 400);
    sizes.set(1, 40);
    to.setKey(kj::arrayPtr(reinterpret_cast<const kj::byte*>(key.data()), key.size()));
  });
}

struct outcome {
  std::string failed, key, steps;
  messages::msg<messages::GroupProbed> report;
};

outcome probed(device_port& devices, const messages::msg<DevicesProbeWanted>& what) {
  outcome o;
  o.report = probe_group(
      devices, what, "n1", [&o](const std::string& step) { o.steps += step + "; "; },
      [&o](const std::string& key) { o.key = key; });
  o.failed = o.report.read()->getFailed().cStr();
  return o;
}

} // namespace

TEST_SUITE("the probe of a group of devices") {
  TEST_CASE("each size is reduced and gathered, and the times are told") {
    few_devices devices;
    const auto o = probed(devices, wanted("given"));
    CHECK(o.failed == "");
    CHECK(o.key == "");
    CHECK(devices.joined_with == "given");
    CHECK(devices.joined_at.first_rank == 4);
    CHECK(devices.joined_at.ranks == 8);
    CHECK(devices.joined_at.bytes_max == 400);
    CHECK(o.steps ==
          "the list of devices; NCCL 2.27.3: joining ranks 4 to 5 of 8; all-reduce of 400 bytes; "
          "all-gather of 400 bytes; all-reduce of 40 bytes; all-gather of 40 bytes; leaving the "
          "group; ");
    auto r = o.report.read();
    CHECK(r->getNode() == "n1");
    CHECK(r->getCheck() == 7);
    CHECK(r->getRound() == 2);
    CHECK(r->getGroup() == 3);
    REQUIRE(r->getSizes().size() == 2);
    CHECK(r->getSizes()[0].getBytes() == 400);
    CHECK(r->getSizes()[0].getAllReduceUs() == 400);
    // Less than a microsecond is no reason to seem unmeasured.
    CHECK(r->getSizes()[0].getAllGatherUs() == 1);
    CHECK(r->getSeconds() == doctest::Approx(0.0044044));
  }

  TEST_CASE("without a key one is made and told first") {
    few_devices devices;
    const auto o = probed(devices, wanted(""));
    CHECK(o.failed == "");
    CHECK(o.key == "made");
    CHECK(devices.joined_with == "made");
    CHECK(o.steps.find("a key for the group; ") == 0);
  }

  TEST_CASE("what fails ends it, with the reason in one line") {
    const auto failed = [](const std::string& what) {
      few_devices devices(what);
      const auto o = probed(devices, wanted(""));
      CHECK(o.report.read()->getSizes().size() == 0);
      return o.failed;
    };
    CHECK(failed("list") == "no driver");
    CHECK(failed("key") == "no network");
    CHECK(failed("join") == "no route");
    CHECK(failed("reduce") == "what came out of an all-reduce of 400 bytes is wrong: a memory, a "
                              "device or a network damages data");
    CHECK(failed("gather") == "lost");
    few_devices devices;
    CHECK(probed(devices, wanted("", 3)).failed ==
          "this node has 2 devices, and had 3 when it was probed by itself");
  }
}
