#include "actors/node_supervisor/worker_group/processes/worker_process/worker_process_core.hpp"

#include <fmt/format.h>

#include <csignal>

namespace troupe::actors {

worker_process_core::effects worker_process_core::end(instant now, int signal_number,
                                                      duration within) {
  effects out;
  if (phase_ == phase::gone || phase_ == phase::killed)
    return out;
  if (signal_number == SIGKILL) {
    phase_ = phase::killed;
    kill_at_ = now + limits::kill_within;
  } else if (phase_ == phase::ending && now + within >= kill_at_) {
    return out; // it has been asked, and has less time left than this would give it
  } else {
    phase_ = phase::ending;
    kill_at_ = now + within;
    within_ = within;
  }
  out.push_back(signal{signal_number});
  return out;
}

worker_process_core::effects worker_process_core::pass_on(int signal_number) {
  effects out;
  if (phase_ == phase::running)
    out.push_back(signal{signal_number});
  return out;
}

worker_process_core::effects worker_process_core::exited(instant,
                                                         const ports::exit_status& status) {
  effects out;
  if (phase_ == phase::gone)
    return out;
  phase_ = phase::gone;
  out.push_back(ended{status});
  return out;
}

worker_process_core::effects worker_process_core::tick(instant now) {
  effects out;
  if (phase_ == phase::gone || phase_ == phase::running || now < kill_at_)
    return out;
  if (phase_ == phase::ending) {
    out.push_back(note{{log::level::warning,
                        "worker_killed",
                        fmt::format("rank {} (pid {}) did not end within {}; killing it", rank_,
                                    pid_, troupe::in_words(within_)),
                        {{"rank", std::int64_t{rank_}}, {"pid", std::int64_t{pid_}}}}});
  } else {
    out.push_back(
        note{{log::level::error,
              "worker_unkillable",
              fmt::format(
                  "rank {} (pid {}) is still there after SIGKILL; the kernel holds it (D state?)",
                  rank_, pid_),
              {{"rank", std::int64_t{rank_}}, {"pid", std::int64_t{pid_}}}}});
  }
  phase_ = phase::killed;
  kill_at_ = now + limits::kill_within;
  out.push_back(signal{SIGKILL});
  return out;
}

std::optional<instant> worker_process_core::next_wakeup() const {
  return phase_ == phase::ending || phase_ == phase::killed ? std::optional(kill_at_)
                                                            : std::nullopt;
}

std::string worker_process_core::in_words() const {
  switch (phase_) {
  case phase::running:
    return fmt::format("rank {} runs as pid {}", rank_, pid_);
  case phase::ending:
    return fmt::format("rank {} (pid {}) was asked to end", rank_, pid_);
  case phase::killed:
    return fmt::format("rank {} (pid {}) was killed", rank_, pid_);
  case phase::gone:
    return fmt::format("rank {} (pid {}) is gone", rank_, pid_);
  }
  return {};
}

} // namespace troupe::actors
