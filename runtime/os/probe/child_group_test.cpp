#include "probe/group_probe.hpp"
#include "runtime/os/probe/child_probe_host.hpp"
#include "runtime/os/probe/node_devices.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;
using messages::DevicesProbeWanted;
using messages::GroupProbed;
using messages::msg;

/// With the program that is built, libraries in the place of NVIDIA's, and scripts in its own.
TEST_SUITE("the probe of a group in a process of its own") {
  constexpr auto troupe_program = TROUPE_PROGRAM;
  constexpr auto sentence = "the probe of this node's devices with others'";
  constexpr std::uint32_t devices_each = 2;

  /// What children find in their environment, until the end of a test.
  class surroundings {
   public:
    surroundings() {
      char made[] = "/tmp/troupe_group_XXXXXX";
      REQUIRE(::mkdtemp(made) != nullptr);
      folder = made;
    }
    ~surroundings() {
      for (const auto& [name, before] : before_)
        if (before.empty())
          ::unsetenv(name.c_str());
        else
          ::setenv(name.c_str(), before.c_str(), 1);
      std::filesystem::remove_all(folder);
    }
    void set(const std::string& name, const std::string& value) {
      const char* before = std::getenv(name.c_str());
      before_.emplace(name, before == nullptr ? "" : before);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    void simulate(const std::string& json) {
      std::ofstream(folder / "devices.json") << json;
      set(simulated_devices_variable, (folder / "devices.json").string());
    }
    /// Two devices at each node; rank `rank` does `what`.
    void put_fakes(const std::string& what = {}, int rank = 0) {
      set("LD_LIBRARY_PATH", TROUPE_FAKE_LIBRARIES);
      set("FAKE_DEVICES", std::to_string(devices_each));
      set("FAKE_FOLDER", folder.string());
      set("FAKE_NCCL", what);
      set("FAKE_NCCL_RANK", std::to_string(rank));
    }
    std::string script(const std::string& lines) const {
      const auto made = folder / "script";
      std::ofstream(made) << "#!/bin/sh\n" + lines + "\n";
      std::filesystem::permissions(made, std::filesystem::perms::owner_all);
      return made.string();
    }

    std::filesystem::path folder;

   private:
    std::map<std::string, std::string> before_;
  };

  msg<DevicesProbeWanted> wanted(std::uint32_t place, const std::string& key,
                                 std::uint64_t within_ms) {
    return messages::local<DevicesProbeWanted>("network_prober", [&](auto to) {
      auto group = to.initGroup();
      group.setCheck(7);
      group.setRound(2);
      group.setGroup(3);
      group.setPlace(place);
      group.setDevices(devices_each);
      group.setFirstRank(place * devices_each);
      group.setRanks(2 * devices_each);
      auto sizes = group.initSizes(2);
      sizes.set(0, 4);
      sizes.set(1, 40'000);
      group.setRepeats(3);
      group.setWithinMs(within_ms);
      to.setKey(kj::arrayPtr(reinterpret_cast<const kj::byte*>(key.data()), key.size()));
    });
  }

  /// A node, by its place in the group.
  class node {
   public:
    explicit node(std::uint32_t place, const std::string& program = troupe_program)
        : place_(place), host_(child_probe_host::open(program, "n" + std::to_string(place))) {}

    void probe(const std::string& key = {}, std::uint64_t within_ms = 60'000) {
      host_->probe_group(
          wanted(place_, key, within_ms), [this](const std::string& made) { key_.set_value(made); },
          [this](const msg<GroupProbed>& report) { report_.set_value(report); });
    }
    std::string key() { return soon(key_); }
    msg<GroupProbed> report() { return soon(report_); }
    std::string failed() { return report().read()->getFailed().cStr(); }
    child_probe_host& host() { return *host_; }

   private:
    template<class T>
    T soon(std::promise<T>& promise) {
      auto value = promise.get_future();
      REQUIRE(value.wait_for(120s) == std::future_status::ready);
      return value.get();
    }

    const std::uint32_t place_;
    std::promise<std::string> key_;
    std::promise<msg<GroupProbed>> report_;
    // Its end is the probe's, whose results are written above.
    const std::shared_ptr<child_probe_host> host_;
  };

  struct pair {
    explicit pair(std::uint64_t within_ms = 60'000) {
      first.probe({}, within_ms);
      second.probe(first.key(), within_ms);
    }
    node first{0}, second{1};
  };

  bool says(const std::string& text, const std::string& what) {
    const bool found = text.find(what) != std::string::npos;
    if (!found)
      MESSAGE(text);
    return found;
  }

  TEST_CASE("devices of two nodes reduce and gather") {
    surroundings here;
    here.put_fakes();
    pair p;
    for (auto* each : {&p.first, &p.second}) {
      auto report = each->report().read();
      CHECK(report->getFailed() == "");
      CHECK(report->getCheck() == 7);
      CHECK(report->getRound() == 2);
      CHECK(report->getGroup() == 3);
      CHECK(report->getNode() == (each == &p.first ? "n0" : "n1"));
      CHECK(report->getSeconds() > 0);
      REQUIRE(report->getSizes().size() == 2);
      CHECK(report->getSizes()[1].getBytes() == 40'000);
      CHECK(report->getSizes()[1].getAllReduceUs() > 0);
      CHECK(report->getSizes()[1].getAllGatherUs() > 0);
    }
  }

  TEST_CASE("a value that comes out wrong") {
    surroundings here;
    here.put_fakes("wrong", 3);
    pair p;
    CHECK(says(p.second.failed(),
               "device 1: what came out of an all-reduce of 4 bytes is wrong: a memory, a device "
               "or a network damages data"));
    p.first.host().end_probe();
    CHECK(says(p.first.failed(), "nothing waits for it any more"));
  }

  TEST_CASE("a library that does not join says why") {
    surroundings here;
    here.put_fakes("init", 2);
    pair p;
    CHECK(p.second.failed() ==
          "the devices could not join 2 others: unhandled system error (NCCL error 2): no socket "
          "interface\\nfound");
  }

  TEST_CASE("a library that notices that another node's device is lost") {
    surroundings here;
    here.put_fakes("lost", 1);
    pair p;
    CHECK(p.first.failed() ==
          "an all-gather of 4 bytes has failed: remote process exited (NCCL error 6)");
  }

  TEST_CASE("a library that crashes or hangs, and the one that waits for it") {
    surroundings here;
    here.put_fakes("crash", 0);
    pair crashes(5'000);
    CHECK(says(crashes.first.failed(), "was killed by SIGSEGV"));
    CHECK(says(crashes.second.failed(),
               std::string(sentence) +
                   " has not ended within 5.0 s, and was killed: its driver may hang; run "
                   "troupe-probe there to see more (its last line: all-gather of 4 bytes)"));
    here.put_fakes();
    surroundings again;
    again.put_fakes("hang", 1);
    pair hangs(5'000);
    CHECK(says(hangs.first.failed(), "(its last line: all-gather of 4 bytes)"));
    // No child is left.
    (void)hangs.second.failed();
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
  }

  TEST_CASE("a key that is none, and devices that have become fewer") {
    surroundings here;
    here.put_fakes();
    node other(1);
    other.probe("short");
    CHECK(other.failed() == "a key of NCCL has 128 bytes, and this one has 5");
    here.set("FAKE_DEVICES", "1");
    node fewer(0);
    fewer.probe();
    CHECK(fewer.key().size() == 128);
    CHECK(fewer.failed() == "this node has 1 devices, and had 2 when it was probed by itself");
  }

  TEST_CASE("simulated devices") {
    surroundings here;
    here.simulate(R"({"devices": [{"copies": 2}], "collectives": "NCCL 2.27.3",
                      "group_bandwidth": 40})");
    pair p;
    auto report = p.second.report().read();
    CHECK(report->getFailed() == "");
    CHECK(report->getSizes()[1].getAllReduceUs() == 1'000);
    CHECK(p.first.failed() == "");
  }

  TEST_CASE("a node without accelerators") {
    surroundings here;
    node n(0);
    n.probe();
    CHECK(n.failed() == "processors have no library for collectives");
  }

  TEST_CASE("what is no report") {
    surroundings here;
    node garbage(0, here.script("echo garbage"));
    garbage.probe();
    CHECK(garbage.failed() ==
          std::string(sentence) + " has written 8 bytes that are no report (exit code 0)");
    const auto other = probe::group_not_probed(
        messages::local<DevicesProbeWanted>("network_prober"), "n7", "of another group");
    const auto bytes = other.any().words().asChars();
    std::ofstream(here.folder / "other")
        .write(bytes.begin(), static_cast<std::streamsize>(bytes.size()));
    node another(0, here.script("cat " + (here.folder / "other").string()));
    another.probe();
    CHECK(says(another.failed(), "are no report"));
  }

  TEST_CASE("a probe that nothing waits for any more is ended") {
    surroundings here;
    const auto begun = here.folder / "begun";
    node n(0, here.script(": > " + begun.string() + "; exec sleep 1000"));
    n.probe({}, 600'000);
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!std::filesystem::exists(begun) && std::chrono::steady_clock::now() < until)
      ::usleep(1'000);
    n.host().end_probe();
    CHECK(n.failed() == std::string(sentence) + " was ended: nothing waits for it any more");
  }
}
