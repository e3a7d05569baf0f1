#pragma once

#include "diag/progress_host.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/worker_links.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Training processes that a fatal signal has hit, and that wait until their stacks are read.
///
/// What a process was doing is gone a moment after it says FatalSignal, and its failure is not told
/// before it has ended: so each is answered as soon as its stacks are kept, and at the latest after
/// crash_answered_within, whatever became of them. Several that crash at the same time are read
/// together, behind the first: what that one costs (tables of symbols) they need not pay again.
/// None is let go while another is read, since the end of one has the others ended by the launcher.
/// Of each rank this happens once in a generation, and crashes_read_max times in the life of this
/// actor; beyond that a process is let go at once.
class fatal_signals_core {
 public:
  struct go_on {
    ports::worker_link to = 0;
    std::uint64_t correlation = 0;
  };
  /// Answered by read().
  struct read_stacks {
    std::uint64_t number = 0;
    generation about;
    std::vector<diag::crashed_process> processes;
    duration within{};
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<go_on, read_stacks, note>;
  using effects = std::vector<effect>;

  /// Those of an earlier generation are being ended.
  effects begin(generation about, std::uint32_t world_size);
  effects hit(instant now, ports::worker_link from, std::int32_t pid, std::uint32_t rank,
              const messages::msg<messages::FatalSignal>& m);
  effects read(std::uint64_t number, const std::vector<diag::crash_report>& reports);
  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

 private:
  struct crash {
    ports::worker_link from = 0;
    std::uint64_t correlation = 0;
    std::int32_t signal = 0;
    diag::crashed_process process;
    instant until;
    enum class stage { waits, is_read, is_told } at = stage::waits;
  };

  void read_next(effects& out);
  void tell(effects& out, crash& c, const diag::crash_report& report) const;
  void let_go_all(effects& out);

  generation about_;
  std::uint32_t world_size_ = 0;
  std::map<std::uint32_t, crash> waiting_; ///< by rank
  std::set<std::uint32_t> hit_;            ///< ranks of this generation
  std::optional<std::uint64_t> reading_;
  std::uint64_t last_number_ = 0;
  std::size_t read_so_far_ = 0;
};

} // namespace troupe::actors
