#include "runtime/os/probe/child_probe_host.hpp"

#include "probe/node_probe.hpp"
#include "runtime/os/probe/node_devices.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;
using messages::NodeProbed;
using messages::NodeProbeWanted;

/// With the program that is built, and with scripts in its place.
TEST_SUITE("the probe in a process of its own") {
  constexpr auto troupe_program = TROUPE_PROGRAM;
  constexpr auto sentence = "the probe of this node's devices";

  struct folder {
    folder() {
      char made[] = "/tmp/troupe_probe_XXXXXX";
      REQUIRE(::mkdtemp(made) != nullptr);
      path = made;
    }
    ~folder() {
      ::unsetenv(simulated_devices_variable);
      std::filesystem::remove_all(path);
    }

    std::string file(const std::string& name, const std::string& content) const {
      std::ofstream(path / name) << content;
      return (path / name).string();
    }
    std::string script(const std::string& lines) const {
      const auto made = file("script", "#!/bin/sh\n" + lines + "\n");
      std::filesystem::permissions(made, std::filesystem::perms::owner_all);
      return made;
    }
    void simulate(const std::string& json) const {
      ::setenv(simulated_devices_variable, file("devices.json", json).c_str(), 1);
    }

    std::filesystem::path path;
  };

  messages::msg<NodeProbeWanted> wanted(std::uint64_t within_ms = 60'000) {
    return messages::local<NodeProbeWanted>("network_check", [within_ms](auto to) {
      to.setCheck(7);
      to.setWithinMs(within_ms);
    });
  }

  struct answer {
    std::promise<messages::msg<NodeProbed>> given;
    probe::probe_host::probed take() {
      return [this](const messages::msg<NodeProbed>& report) { given.set_value(report); };
    }
    messages::msg<NodeProbed> wait() {
      auto report = given.get_future();
      REQUIRE(report.wait_for(120s) == std::future_status::ready);
      return report.get();
    }
    std::string failed() { return wait().read()->getFailed().cStr(); }
  };

  std::string failed(const std::string& program, std::uint64_t within_ms = 60'000) {
    const auto host = child_probe_host::open(program, "n7");
    answer a;
    host->probe_node(wanted(within_ms), a.take());
    auto report = a.wait();
    CHECK(report.read()->getNode() == "n7");
    CHECK(report.read()->getCheck() == 7);
    return report.read()->getFailed().cStr();
  }

  TEST_CASE("devices that work") {
    const folder here;
    here.simulate(R"({"devices": [{"copies": 2, "compute_ms": 90}]})");
    const auto host = child_probe_host::open(troupe_program, std::string(200, 'n'));
    answer a;
    host->probe_node(wanted(), a.take());
    auto report = a.wait().read();
    CHECK(report->getFailed() == "");
    CHECK(report->getNode() == std::string(200, 'n'));
    CHECK(report->getSeconds() == 0.09);
    CHECK(report->getDevices().size() == 2);
  }

  TEST_CASE("the devices of this machine") {
    CHECK(failed(troupe_program) == "");
  }

  TEST_CASE("a device that takes the process along") {
    const folder here;
    here.simulate(R"({"devices": [{}, {"does": "crash"}]})");
    CHECK(failed(troupe_program) ==
          std::string(sentence) +
              " was killed by SIGSEGV: its driver may be broken; run troupe-probe there to see "
              "more (its last line: device 1: products of matrices)");
  }

  TEST_CASE("a device that hangs is killed at the deadline") {
    const folder here;
    here.simulate(R"({"devices": [{"does": "hang"}]})");
    const auto before = std::chrono::steady_clock::now();
    CHECK(failed(troupe_program, 1'000) ==
          std::string(sentence) +
              " has not ended within 1.0 s, and was killed: its driver may hang; run troupe-probe "
              "there to see more (its last line: device 0: products of matrices)");
    CHECK(std::chrono::steady_clock::now() - before >= 1s);
    // No child is left.
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
  }

  TEST_CASE("a file of simulated devices that is malformed") {
    const folder here;
    here.simulate("{\"devices\":\n [{\"nam\": 1}]}");
    CHECK(failed(troupe_program).find("devices.json: line 2: a device has no member 'nam'") !=
          std::string::npos);
    ::setenv(simulated_devices_variable, "/nowhere/devices.json", 1);
    CHECK(failed(troupe_program) ==
          "TROUPE_PROBE_DEVICES=/nowhere/devices.json: No such file or directory");
  }

  TEST_CASE("a program that is missing") {
    CHECK(failed("/nowhere/troupe") ==
          std::string(sentence) + ": /nowhere/troupe cannot be started: No such file or directory");
  }

  TEST_CASE("what is no report") {
    const folder here;
    CHECK(failed(here.script("echo garbage")) ==
          std::string(sentence) + " has written 8 bytes that are no report (exit code 0)");
    CHECK(failed(here.script("exit 3")) ==
          std::string(sentence) +
              " has ended with exit code 3 and no report; run troupe-probe there to see more");
    CHECK(failed(here.script("printf 'no \\033[31m\\tdriver' >&2; exit 1"))
              .find("(its last line: no \\x1b[31m\\tdriver)") != std::string::npos);
    CHECK(failed(here.script("head -c 2000000 /dev/zero")) ==
          std::string(sentence) + " has written more than 1048576 bytes, which is no report");
    // A message of another kind, and a report of another check.
    CHECK(failed(here.script("cat")).find("are no report") != std::string::npos);
    const auto other = probe::not_probed(
        messages::local<NodeProbeWanted>("network_check", [](auto to) { to.setCheck(8); }), "n7",
        "of check 8");
    const auto bytes = other.any().words().asChars();
    const auto file = here.file("other", {bytes.begin(), bytes.size()});
    CHECK(failed(here.script("cat " + file)).find("are no report") != std::string::npos);
  }

  TEST_CASE("a report counts, however its process has ended behind it") {
    const folder here;
    const auto right = probe::not_probed(wanted(), "x", "worn out");
    const auto bytes = right.any().words().asChars();
    const auto file = here.file("right", {bytes.begin(), bytes.size()});
    CHECK(failed(here.script("cat " + file + "; kill -SEGV $$")) == "worn out");
  }

  void wait_for(const std::filesystem::path& file) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!std::filesystem::exists(file) && std::chrono::steady_clock::now() < until)
      ::usleep(1'000);
    REQUIRE(std::filesystem::exists(file));
  }

  TEST_CASE("another probe ends the one that is under way") {
    const folder here;
    const auto begun = here.path / "begun";
    const auto host = child_probe_host::open(
        here.script("if mkdir " + begun.string() + "; then exec sleep 1000; fi"), "n7");
    answer first, second;
    host->probe_node(wanted(600'000), first.take());
    wait_for(begun);
    host->probe_node(wanted(), second.take());
    CHECK(first.failed() == std::string(sentence) + " was ended: nothing waits for it any more");
    CHECK(second.failed().find("exit code 0") != std::string::npos);
  }

  TEST_CASE("the host's end is the probe's") {
    const folder here;
    const auto begun = here.path / "begun";
    auto host =
        child_probe_host::open(here.script(": > " + begun.string() + "; exec sleep 1000"), "n7");
    answer a;
    host->probe_node(wanted(600'000), a.take());
    wait_for(begun);
    host.reset();
    auto given = a.given.get_future();
    REQUIRE(given.wait_for(0s) == std::future_status::ready);
    auto report = given.get().read();
    CHECK(std::string(report->getFailed().cStr()).find("was ended") != std::string::npos);
  }
}
