#include "probe/node_probe.hpp"

#include "probe/limits.hpp"

#include <doctest/doctest.h>

#include <map>
#include <utility>

using namespace troupe;
using namespace troupe::probe;
using messages::NodeProbed;
using messages::NodeProbeWanted;

TEST_SUITE("what a node finds out about itself") {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  const step_told quiet = [](const std::string&) {};

  /// Says what the test has put there.
  struct fake_devices : device_port {
    explicit fake_devices(std::uint32_t count) {
      for (std::uint32_t n = 0; n < count; ++n) {
        devices.push_back({n, "fake", 80 * gib, 0, {}});
        work[n] = computed{std::chrono::milliseconds(40 + n), 1000.0 + n};
      }
    }

    bool has_accelerators() const override { return accelerators; }
    result<std::vector<device_facts>> list() override {
      if (!driver.empty())
        return failure(errc::refused, driver);
      return devices;
    }
    result<computed> compute(std::uint32_t index) override {
      computed_on.push_back(index);
      return work.at(index);
    }
    result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) override {
      return bandwidth.at({from, to});
    }
    result<std::uint32_t> channels(std::uint32_t first, std::uint32_t second) override {
      return links.at({first, second});
    }
    std::string collectives() override { return library; }
    result<std::string> make_group_key() override { return std::string(); }
    result<std::unique_ptr<device_group>> join_group(const std::string&,
                                                     const group_place&) override {
      return std::unique_ptr<device_group>();
    }

    std::string library = "NCCL 2.27.3";

    bool accelerators = true;
    std::string driver;
    std::vector<device_facts> devices;
    std::map<std::uint32_t, result<computed>> work;
    std::map<std::pair<std::uint32_t, std::uint32_t>, result<std::uint64_t>> bandwidth;
    std::map<std::pair<std::uint32_t, std::uint32_t>, result<std::uint32_t>> links;
    std::vector<std::uint32_t> computed_on;
  };

  using pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  messages::msg<NodeProbeWanted> wanted() {
    return messages::local<NodeProbeWanted>("network_check", [](auto to) {
      to.setCheck(7);
      to.setWithinMs(1000);
    });
  }
  messages::msg<NodeProbeWanted> wanted(const pairs& of, std::uint64_t bandwidth = 10'000,
                                        std::uint32_t channels = 2) {
    return messages::local<NodeProbeWanted>("network_check", [&](auto to) {
      to.setCheck(7);
      auto box = to.initBox();
      box.setMinBandwidth(bandwidth);
      box.setMinChannels(channels);
      auto list = box.initPairs(static_cast<unsigned>(of.size()));
      for (unsigned n = 0; n < list.size(); ++n) {
        list[n].setFirst(of[n].first);
        list[n].setSecond(of[n].second);
      }
    });
  }
  std::string failed(device_port & devices, const messages::msg<NodeProbeWanted>& what) {
    return probe_node(devices, what, "n1", quiet).read()->getFailed().cStr();
  }
  std::string pair_failed(device_port & devices, const messages::msg<NodeProbeWanted>& what) {
    auto report = probe_node(devices, what, "n1", quiet).read();
    REQUIRE(report->getPairs().size() == 1);
    CHECK(report->getFailed() == report->getPairs()[0].getFailed());
    return report->getPairs()[0].getFailed().cStr();
  }

  TEST_CASE("a node that works says what it has; the slowest device counts") {
    fake_devices devices(3);
    devices.work[1] = computed{250ms, 10};
    auto report = probe_node(devices, wanted(), "n1", quiet).read();
    CHECK(report->getNode() == "n1");
    CHECK(report->getCheck() == 7);
    CHECK(report->getFailed() == "");
    CHECK(report->getSeconds() == 0.25);
    CHECK(report->getCollectives() == "NCCL 2.27.3");
    CHECK(report->getRanks() == 3);
    REQUIRE(report->getDevices().size() == 3);
    CHECK(report->getPairs().size() == 0);
    const auto device = report->getDevices()[2];
    CHECK(device.getIndex() == 2);
    CHECK(device.getName() == "fake");
    CHECK(device.getMemoryBytes() == 80 * gib);
    CHECK(device.getComputeUs() == 42'000);
    CHECK(device.getGigaflops() == 1002);
    CHECK(device.getFailed() == "");
  }

  TEST_CASE("no devices, or a driver that does not list them") {
    fake_devices none(0);
    CHECK(failed(none, wanted()) == "this node has no device at all");
    CHECK(failed(none, wanted({{0, 1}})) == "this node has no device at all");
    fake_devices broken(2);
    broken.driver = "the NVIDIA driver does not start";
    auto report = probe_node(broken, wanted({{0, 1}}), "n1", quiet).read();
    CHECK(report->getFailed() == "the NVIDIA driver does not start");
    CHECK(report->getSeconds() == 0);
    CHECK(report->getDevices().size() == 0);
    fake_devices many(limits::probed_devices_max + 1);
    CHECK(failed(many, wanted()) == "this node has 65 devices; at most 64 are probed");
    fake_devices most(limits::probed_devices_max);
    CHECK(failed(most, wanted()) == "");
  }

  TEST_CASE("memory that is in use before the start: from 30 % on") {
    fake_devices devices(4);
    devices.devices[3].memory_used_bytes = 24 * gib - 1;
    CHECK(failed(devices, wanted()) == "");
    devices.devices[3].memory_used_bytes = 24 * gib;
    CHECK(failed(devices, wanted()) == "device 3 has 24 of 80 GiB of its memory in use already: "
                                       "another process trains on it");
    devices.devices[3].memory_used_bytes = 24 * gib + gib / 10;
    devices.devices[3].memory_bytes = 80 * gib - gib / 3;
    CHECK(failed(devices, wanted()) == "device 3 has 24.1 of 79.7 GiB of its memory in use "
                                       "already: another process trains on it");
    // Workers of this job have run here: it may be theirs.
    const auto again = wanted();
    CHECK(failed(devices, messages::altered(again, again.any().envelope(),
                                            [](auto to) { to.setTrained(true); })) == "");
    // A device that does not say how much it has.
    devices.devices[3].memory_bytes = devices.devices[3].memory_used_bytes = 0;
    CHECK(failed(devices, wanted()) == "");
  }

  TEST_CASE("health, and work that fails") {
    fake_devices devices(2);
    devices.devices[1].health = "2 uncorrectable errors of its memory";
    CHECK(failed(devices, wanted()) == "device 1: 2 uncorrectable errors of its memory");
    devices.devices[1].health.clear();
    devices.work.at(0) = failure(errc::refused, "its products are wrong");
    auto report = probe_node(devices, wanted(), "n1", quiet).read();
    CHECK(report->getFailed() == "device 0: its products are wrong");
    CHECK(report->getDevices()[0].getFailed() == "device 0: its products are wrong");
    CHECK(report->getDevices()[0].getComputeUs() == 0);
    CHECK(report->getDevices()[1].getFailed() == "");
    CHECK(report->getSeconds() == 0.041);
  }

  TEST_CASE("the first failure is told, and how many others there are") {
    fake_devices devices(3);
    devices.devices[0].health = "broken";
    devices.devices[1].memory_used_bytes = 80 * gib;
    CHECK(failed(devices, wanted()) == "device 0: broken (and 1 more)");
    devices.work.at(2) = failure(errc::refused, "dead");
    CHECK(failed(devices, wanted()) == "device 0: broken (and 2 more)");
  }

  TEST_CASE("what is broken or used by others is not computed on") {
    fake_devices devices(3);
    devices.devices[0].health = "broken";
    devices.devices[1].memory_used_bytes = 80 * gib;
    (void)failed(devices, wanted());
    CHECK(devices.computed_on == std::vector<std::uint32_t>{2});
  }

  TEST_CASE("processors are called so") {
    fake_devices devices(1);
    devices.accelerators = false;
    devices.work.at(0) = failure(errc::refused, "their products are wrong");
    CHECK(failed(devices, wanted()) == "the processors: their products are wrong");
    devices.work.at(0) = computed{80ms, 20};
    auto report = probe_node(devices, wanted(), "n1", quiet).read();
    CHECK(report->getFailed() == "");
    CHECK(report->getCollectives() == "");
  }

  TEST_CASE("a pair has the worse direction and its channels") {
    fake_devices devices(2);
    devices.bandwidth = {{{0, 1}, 20'000}, {{1, 0}, 18'000}};
    devices.links = {{{0, 1}, 12}};
    auto report = probe_node(devices, wanted({{0, 1}}), "n1", quiet).read();
    CHECK(report->getFailed() == "");
    REQUIRE(report->getPairs().size() == 1);
    const auto pair = report->getPairs()[0];
    CHECK((pair.getFirst() == 0 && pair.getSecond() == 1));
    CHECK(pair.getBandwidth() == 18'000);
    CHECK(pair.getChannels() == 12);
    CHECK(pair.getFailed() == "");
  }

  TEST_CASE("bounds of pairs, at their edges") {
    fake_devices devices(2);
    devices.links = {{{0, 1}, 2}};
    devices.bandwidth = {{{0, 1}, 10'000}, {{1, 0}, 10'000}};
    CHECK(pair_failed(devices, wanted({{0, 1}})) == "");
    devices.bandwidth.at({1, 0}) = 9'999;
    CHECK(pair_failed(devices, wanted({{0, 1}})) ==
          "copies from device 1 to device 0 make 9999 MB/s, and at least 10000 are expected "
          "(--min-bandwidth)");
    devices.bandwidth.at({0, 1}) = 9'998;
    CHECK(
        pair_failed(devices, wanted({{0, 1}})).find("copies from device 0 to device 1 make 9998") ==
        0);
    devices.bandwidth = {{{0, 1}, 0}, {{1, 0}, 0}};
    CHECK(pair_failed(devices, wanted({{0, 1}}, 0)) == "");
    devices.links.at({0, 1}) = 1;
    CHECK(pair_failed(devices, wanted({{0, 1}}, 0)) ==
          "devices 0 and 1 have 1 channel between them that is up, and at least 2 must be "
          "(--min-channels)");
    devices.links.at({0, 1}) = 0;
    CHECK(pair_failed(devices, wanted({{0, 1}}, 0)).find("have 0 channels between them that are") !=
          std::string::npos);
    CHECK(pair_failed(devices, wanted({{0, 1}}, 0, 0)) == "");
  }

  TEST_CASE("a pair that cannot be measured") {
    fake_devices devices(2);
    devices.bandwidth = {{{0, 1}, 20'000}, {{1, 0}, failure(errc::refused, "no access")}};
    devices.links = {{{0, 1}, failure(errc::refused, "NVML does not say")}};
    CHECK(pair_failed(devices, wanted({{0, 1}})) == "copies from device 1 to device 0: no access");
    devices.bandwidth.at({1, 0}) = 20'000;
    CHECK(pair_failed(devices, wanted({{0, 1}})) == "devices 0 and 1: NVML does not say");
  }

  TEST_CASE("a pair of devices that are not there, or that are one") {
    fake_devices devices(4);
    CHECK(pair_failed(devices, wanted({{6, 7}})) == "--box-pairs 6:7: this node has 4 devices");
    CHECK(pair_failed(devices, wanted({{0, 4}})) == "--box-pairs 0:4: this node has 4 devices");
    CHECK(pair_failed(devices, wanted({{2, 2}})) == "--box-pairs 2:2: a pair is of two devices");
    fake_devices one(1);
    CHECK(pair_failed(one, wanted({{0, 1}})) == "--box-pairs 0:1: this node has 1 device");
    const pairs many(limits::box_pairs_max + 1, {0, 1});
    CHECK(failed(devices, wanted(many)) == "--box-pairs: 257 pairs; at most 256 are possible");
  }

  TEST_CASE("the pairs that others stand behind are looked at all the same") {
    fake_devices devices(4);
    devices.bandwidth = {{{0, 1}, 20'000}, {{1, 0}, 20'000}};
    devices.links = {{{0, 1}, 2}};
    auto report = probe_node(devices, wanted({{6, 7}, {0, 1}, {3, 5}}), "n1", quiet).read();
    CHECK(report->getFailed() == "--box-pairs 6:7: this node has 4 devices (and 1 more)");
    CHECK(report->getPairs()[1].getBandwidth() == 20'000);
    CHECK(report->getPairs()[1].getFailed() == "");
  }

  TEST_CASE("switches are between accelerators only") {
    fake_devices devices(1);
    devices.accelerators = false;
    auto report = probe_node(devices, wanted({{0, 1}}), "n1", quiet).read();
    CHECK(report->getFailed() == "--switchbox-check: this node has no accelerators, and so no "
                                 "switches between them");
    CHECK(report->getPairs().size() == 0);
    CHECK(report->getSeconds() > 0);
  }

  TEST_CASE("lines of drivers are made such that a report can carry them") {
    fake_devices devices(1);
    devices.devices[0].name = std::string(10'000, 'x');
    devices.devices[0].health = "two\nlines\x1b[31m " + std::string(20'000, 'y');
    const auto report = probe_node(devices, wanted(), "n1", quiet);
    CHECK(report.read()->getFailed().size() == limits::failure_line_max);
    const std::string told = report.read()->getFailed().cStr();
    CHECK(told.find("device 0: two lines [31m y") == 0);
    const auto bytes = report.any().words().asBytes();
    CHECK(messages::admit(bytes.begin(), bytes.size()).has_value());
  }

  TEST_CASE("each step that may hang is told before it") {
    fake_devices devices(2);
    devices.bandwidth = {{{0, 1}, 20'000}, {{1, 0}, 20'000}};
    devices.links = {{{0, 1}, 2}};
    std::vector<std::string> steps;
    const step_told tell = [&](const std::string& what) { steps.push_back(what); };
    (void)probe_node(devices, wanted({{0, 1}}), "n1", tell);
    CHECK(steps == std::vector<std::string>{"the list of devices", "device 0: products of matrices",
                                            "device 1: products of matrices",
                                            "copies from device 0 to device 1",
                                            "copies from device 1 to device 0",
                                            "devices 0 and 1: channels between them"});
  }

  TEST_CASE("a node that could not be probed") {
    const auto report = not_probed(wanted(), "n1", "killed\nby SIGSEGV");
    CHECK(report.read()->getNode() == "n1");
    CHECK(report.read()->getCheck() == 7);
    CHECK(report.read()->getFailed() == "killed by SIGSEGV");
  }
}
