#pragma once

#include "launch/keeper/kept_process_host.hpp"
#include "tests/process/process_contract.hpp"
#include "tests/process/process_tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include <unistd.h>

/// Tests that run in a keeper's care, and what they see of its processes.
namespace troupe::testing {

using namespace std::chrono_literals;

/// What the keeper found when it began.
inline pid_t there_before = 0;
/// The keeper's own last process; 0 if it has none.
inline pid_t last_process = 0;

/// Of the keeper, whose child this process is.
inline std::vector<pid_t> descendants() {
  auto found = descendants_of(::getppid());
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](pid_t pid) {
                               return pid == ::getpid() || pid == there_before ||
                                      pid == last_process;
                             }),
              found.end());
  return found;
}

/// This process is a keeper's supervisor.
inline launch::keeper_client* keeper = nullptr;
inline os::io_thread* io = nullptr;
inline os::io_thread* slow = nullptr;

/// Those that keepers among our processes have made.
inline std::vector<std::filesystem::path> inner_groups() {
  std::vector<std::filesystem::path> found;
  std::error_code gone;
  if (keeper->group())
    for (const auto& one :
         std::filesystem::recursive_directory_iterator(keeper->group()->path(), gone))
      if (one.is_directory(gone) && one.path().filename().string().rfind("troupe-", 0) == 0)
        found.push_back(one.path());
  return found;
}

class real_world final : public process_world {
 public:
  explicit real_world(os::process_host_options options = {})
      : host_(*io, *slow, *keeper, options) {}
  ~real_world() override {
    for (const pid_t pid : descendants())
      ::kill(pid, SIGKILL);
    until([this] { return alive() == 0; });
    sweep();
  }

  ports::process_host& host() override { return host_; }
  bool until(const std::function<bool()>& holds) override {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
    return holds();
  }
  ports::process_spec exits_with(int status) override {
    return shell("exit " + std::to_string(status));
  }
  ports::process_spec runs() override { return shell("exec sleep 1000"); }
  ports::process_spec ignores_sigterm() override {
    return shell("trap '' TERM; touch " + (place_ / "deaf") + "; while :; do sleep 1000; done");
  }
  bool deaf() override { return std::filesystem::exists(place_ / "deaf"); }
  ports::process_spec leaves_an_orphan() override { return shell("setsid -f sleep 1000"); }
  ports::process_spec missing() override {
    return {{"no-such-program"}, {"PATH=/usr/bin"}, "", "", ""};
  }
  std::size_t alive() override { return alive_among(descendants()); }

  /// Runs to its end.
  ports::exit_status run(const ports::process_spec& spec) {
    std::promise<ports::exit_status> end;
    const auto one =
        host_.start(spec, [&end](ports::exit_status status) { end.set_value(status); });
    if (!one)
      FAIL(one.error().what);
    return end.get_future().get();
  }

  std::string error_text(const ports::process_spec& spec) {
    const auto one = host_.start(spec, [](ports::exit_status) {});
    REQUIRE_FALSE(one);
    CHECK(one.error().code == errc::invalid);
    return one.error().what;
  }

  std::size_t sweep() { return sweep(ports::sweep_order{}).killed; }
  ports::swept sweep(const ports::sweep_order& order) {
    std::promise<ports::swept> answer;
    host_.sweep(
        order, [](const auto&) {}, [&answer](const auto& s) { answer.set_value(s); });
    return answer.get_future().get();
  }

 private:
  scratch place_;
  launch::kept_process_host host_;
};

inline ports::process_spec probe(const std::string& verb, const std::string& output) {
  return {{TROUPE_PROCESS_PROBE, verb}, {}, "", output, ""};
}

} // namespace troupe::testing
