#pragma once

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "tests/actors/fate.hpp"
#include "tests/actors/vocabulary.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A machine with processes for one agent_core: does what the core's effects say, lets fate
/// strike, and throws invariant_broken as soon as the core does what an agent must never do.
class agent_world {
 public:
  explicit agent_world(fate choose);

  /// One thing happens: a directive (also stale ones), a process that comes up or ends, a sweep
  /// that is done, the user's signal, the supervisor's crash; or time passes.
  void strike();

  /// From now on processes end when asked to, and everything is answered. Returns once nothing more
  /// follows; throws unless the agent is then where its last directive wanted it.
  void let_be();

 private:
  struct process {
    generation which;
    bool up = false; ///< The agent has heard of it.
    bool asked_to_end = false;
    std::optional<ports::exit_status> ended; ///< and a successor has to be told
  };

  void perform(const agent_core::effects& effects);
  void obey(const agent_core::start_generation& e);
  void obey(const agent_core::stop_generation& e);
  void obey(const agent_core::signal_worker& e);
  void obey(const agent_core::look_for_handler& e);
  void obey(const agent_core::sweep&);
  void obey(const agent_core::open_store&);
  void obey(const agent_core::adopt_store&);
  void obey(const agent_core::close_store&);
  void obey(const agent_core::pick_port&);
  void obey(const agent_core::drain& e);
  void obey(const agent_core::save_newest&) {}
  void obey(const agent_core::report& e);
  void obey(const agent_core::remember& e);
  void obey(const agent_core::node_over& e);
  void obey(const agent_core::watch&) {}
  void obey(const agent_core::note&) {}

  void direct();
  void crash();
  std::vector<ports::survivor> let_survive();
  void start_at(const assignment& place);
  void adopt_at(const assignment& place);
  void stir_process();
  void end_generation();
  void start_fails(local_rank local);
  void say_end(local_rank local, const process& p, ports::exit_status how, bool before_start);
  void check_nothing_is_left_of(generation which) const;
  void end_sweep(std::size_t killed);
  void end_drain(bool failed);
  void open();
  void end_look();
  void end_process(local_rank local, ports::exit_status how);
  void check_nothing_is_left(const std::string& when) const;
  generation some_generation();

  static constexpr std::uint32_t slots = 3;

  fate choose_;
  agent_core core_;
  instant now_ = dawn;
  std::uint64_t newest_ = 0;
  std::optional<generation> up_; ///< whose supervisor lives
  bool refused_ = false;         ///< and could not be started
  std::map<local_rank, process> living_;
  std::map<local_rank, process> gone_; ///< since the last sweep was done
  std::map<local_rank, process> left_; ///< by a supervisor that crashed
  std::optional<messages::msg<messages::Underway>> kept_;
  generation ran_;         ///< the last one of which a process was started
  bool leftovers_ = false; ///< something was started since the last sweep was done
  bool sweeping_ = false;
  bool store_ = false;
  std::deque<generation> opening_; ///< asked for, and not answered
  bool store_left_ = false;
  bool over_ = false;
  bool leaving_ = false;
  std::optional<generation> finished_;
  std::optional<generation> drain_;                  ///< asked, and not answered
  std::optional<agent_core::look_for_handler> look_; ///< the same
};

} // namespace troupe::actors::testing
