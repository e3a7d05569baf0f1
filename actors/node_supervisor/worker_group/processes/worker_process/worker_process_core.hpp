#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Ends one process: the asked-for signal, then SIGKILL when its time is up. What it leaves behind
/// is the leader's business (sweep).
class worker_process_core {
 public:
  enum class phase {
    running,
    ending, ///< Was signalled; has until `kill_at_`.
    killed, ///< Was sent SIGKILL; only the kernel can hold it now.
    gone,
  };

  struct signal {
    int number;
  };
  struct ended {
    ports::exit_status status;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<signal, ended, note>;
  using effects = std::vector<effect>;

  worker_process_core(std::int32_t pid, global_rank rank) : pid_(pid), rank_(rank) {}

  effects end(instant now, int signal_number, duration within);
  effects pass_on(int signal_number);
  effects exited(instant now, const ports::exit_status& status);
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  phase current_phase() const { return phase_; }
  std::string in_words() const;

 private:
  std::int32_t pid_;
  global_rank rank_;
  phase phase_ = phase::running;
  instant kill_at_{};
  duration within_{};
};

} // namespace troupe::actors
