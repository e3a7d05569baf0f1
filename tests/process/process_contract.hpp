#pragma once

#include "runtime/ports/process.hpp"

#include <functional>
#include <memory>

namespace troupe::testing {

/// A process host under test, the programs it can run, and how time passes there: a real machine or
/// a simulated one.
class process_world {
 public:
  virtual ~process_world() = default;

  virtual ports::process_host& host() = 0;
  /// Lets time pass until `holds`; answers whether it came to that.
  virtual bool until(const std::function<bool()>& holds) = 0;

  /// Ends by itself with this status.
  virtual ports::process_spec exits_with(int status) = 0;
  /// Runs until a signal ends it.
  virtual ports::process_spec runs() = 0;
  /// Runs on after SIGTERM, once it is `deaf`.
  virtual ports::process_spec ignores_sigterm() = 0;
  virtual bool deaf() = 0;
  /// Ends with 0 and leaves one process behind, in a session of its own.
  virtual ports::process_spec leaves_an_orphan() = 0;
  /// Names a program that does not exist.
  virtual ports::process_spec missing() = 0;
  /// How many processes started by this host, or left behind by those, are alive.
  virtual std::size_t alive() = 0;
};

using process_world_maker = std::function<std::unique_ptr<process_world>()>;

/// What every ports::process_host promises. To be called from one TEST_CASE per host.
void check_process_contract(const process_world_maker& make);

} // namespace troupe::testing
