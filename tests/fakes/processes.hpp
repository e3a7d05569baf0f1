#pragma once

#include "runtime/ports/process.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// Processes that live as long as a test says. They are named by the first word of what was to run.
class fake_processes final : public ports::process_host {
 public:
  // The actors.
  void aside(std::function<void()> job) override { job(); }
  result<ports::started> start(const ports::process_spec& spec, ended on_end) override;
  std::vector<ports::survivor> survivors() override { return survivors_; }
  void adopt(ports::process_id survivor, ended on_end) override;
  void signal(ports::process_id process, int number) override;
  void signal_alone(ports::process_id process, int number) override;
  bool takes_signal(std::int32_t, int) override { return takes_signals; }
  void sweep(const ports::sweep_order& order, std::function<void(const ports::left_behind&)> waits,
             std::function<void(const ports::swept&)> done) override;
  result<std::uint16_t> free_port(const std::string& address) override;
  std::int64_t unix_time_ms() override { return 0; }
  std::optional<std::string> read_small_file(const std::string&, std::size_t) override {
    return std::nullopt;
  }
  std::optional<std::string> read_end_of_file(const std::string&, std::size_t) override {
    return std::nullopt;
  }

  // The test.
  /// The living process of this name ends.
  void end(const std::string& name, ports::exit_status how);
  /// From now on (or no longer) nothing can be started, and why.
  void refuse_to_start(std::optional<error> why) { no_start_ = std::move(why); }
  /// A process of this name is there from an earlier supervisor.
  void survive(const std::string& name, std::uint64_t label);
  /// Living processes, by name: "g1/0 g1/1". (Which of two actors starts first is not decided.)
  std::string living() const;
  /// What was done since the last call: "g1/0 gets 15, g1/1 gets 15, sweep". Between two sweeps by
  /// name, since the order among processes is not decided.
  std::string take_deeds();
  /// SIGKILL ends a process at once, unless this says otherwise.
  bool unkillable = false;
  /// They have handlers for all signals.
  bool takes_signals = true;
  /// Sweeps are answered at once, with this number.
  std::size_t strays = 0;
  /// No port is free.
  bool no_ports = false;

 private:
  struct process {
    std::string name;
    ended on_end;
  };
  void tell(const std::string& deed);

  std::map<ports::process_id, process> living_;
  ports::process_id last_ = 0;
  std::vector<ports::survivor> survivors_;
  std::optional<error> no_start_;
  std::vector<std::string> deeds_;
};

} // namespace troupe::testing
