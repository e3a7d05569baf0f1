#pragma once

#include "runtime/ports/worker_links.hpp"
#include "tests/sim/processes.hpp"
#include "tests/sim/progress.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::sim {

/// The training processes of a simulation on the channel to their node supervisors: each dials some
/// time after its start, and again when its supervisor is another one; tells its first step,
/// answers, and may be hit by a signal.
///
/// Only where `dials_after` is set: in other simulations no process has a channel.
class channel {
 public:
  channel(world& of, trainers& training, progress& pages);

  std::optional<duration> dials_after;

  std::shared_ptr<ports::worker_links> host_of(const host_ptr& launcher);

  /// The process tells its supervisor, and ends by this signal once it has heard GoOn, or after as
  /// long as it waits for that.
  void hit(std::uint64_t process, int signal);

 private:
  class links;
  class starts;
  struct talker {
    ports::worker_link link = 0; ///< 0: it is not connected
    messages::author author;
    std::uint64_t first_step_ns = 0;
    std::optional<int> hit_by;
  };

  void dial(std::uint64_t process);
  void first_step(std::uint64_t process);
  void say(std::uint64_t process, const messages::any_msg& m);
  void hear(std::uint64_t process, const messages::any_msg& m);
  void end_by_signal(std::uint64_t process);
  bool runs(std::uint64_t process) const;
  const process_record& record(std::uint64_t process) const { return training_.all()[process - 1]; }
  std::shared_ptr<links> supervisor_of(std::uint64_t process) const;

  world& world_;
  trainers& training_;
  progress& pages_;
  std::map<std::uint64_t, talker> talkers_;               ///< by process
  std::map<std::string, std::weak_ptr<links>> listeners_; ///< by node
};

} // namespace troupe::sim
