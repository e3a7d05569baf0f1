#pragma once

#include "diag/progress/page.hpp"
#include "messages/kinds.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::actors {

/// Communicators by number: a rank's rows hold numbers, since thousands of ranks say the same
/// names.
class communicator_names {
 public:
  struct named {
    std::string name;
    std::uint64_t members_hash = 0;
    std::uint32_t members = 0; ///< the most that a member has said; 0: unknown
  };
  /// Bounded by limits::communicators_known_max: what is beyond has the number of the last.
  std::uint32_t number_of(const std::string& name, std::uint64_t members_hash,
                          std::uint32_t members);
  const named& at(std::uint32_t number) const { return names_[number]; }
  std::size_t size() const { return names_.size(); }
  void clear();

 private:
  std::vector<named> names_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint32_t> numbers_;
};

/// One communicator as one rank sees it.
struct communicator_row {
  std::uint32_t communicator = 0;
  std::uint64_t entered = 0;
  std::uint64_t left = 0;
  diag::collective kind = diag::collective::none;
  std::uint64_t bytes = 0;
  duration in_it{}; ///< since the last was entered

  bool ends_known = true; ///< else `left` means nothing

  bool waits() const { return entered > left; }
  /// The first that is not finished.
  std::uint64_t waits_in() const { return left + 1; }
};

/// What looks at a rank have shown, as RankProgress.motion has it.
enum class rank_motion : std::uint8_t {
  unknown, ///< not looked at, or what it executes cannot be seen
  moves,   ///< its script's thread, or what that waits for
  stands,  ///< asleep, and nothing that it waits for is at work
  spins,   ///< a loop of Python, always in the same functions
  works,   ///< one call that may take long: a computation in C, an answer, a timer, a child
  starves, ///< ready to run, without a processor
  ends,    ///< its script is over
  delayed, ///< as `stands`, while another thread of it had no processor: it may only be late
  awaits,  ///< asleep until another of its threads or processes lets it go on: one may be about to
  ended,   ///< as `ends`, and nothing of it goes on
  locked,  ///< as `stands`, in a lock, and nothing else of it is at work
  deadlocked, ///< as `locked`, where only its own Python could let it go on
};

/// The newest that is known of a rank. Times are as of `at`.
struct rank_facts {
  bool known = false;
  instant at;             ///< the report came
  std::uint32_t node = 0; ///< its number in the world
  std::int32_t pid = 0;
  std::uint64_t feeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t step = 0;
  diag::phase phase_now = diag::phase::other;
  std::string user_phase;
  duration in_phase{};
  duration idle{};
  duration limit{};
  duration ran_for{};
  duration step_p99{};
  char state = 0;
  std::uint32_t cpu_permille = 0;
  bool io_moves = false;
  bool traced = false;
  rank_motion motion = rank_motion::unknown;
  std::string place;
  std::vector<std::string> evidence;
  std::vector<std::string> slow_peers;
  std::vector<communicator_row> rows;
  /// How far it was when it was last seen to enter a collective; tells one that goes on alone.
  std::uint64_t steps_when_entered = 0;

  /// Its process has ended.
  bool is_gone() const { return state == 'X'; }
  bool is_stopped() const { return state == 'T' || state == 't'; }
  bool is_held_by_kernel() const { return state == 'D'; }
  bool spins() const { return motion == rank_motion::spins; }
  bool works() const { return motion == rank_motion::works; }
  bool awaits() const { return motion == rank_motion::awaits; }
  bool ended() const { return motion == rank_motion::ended; }
  /// Its script is.
  bool is_over() const { return motion == rank_motion::ends || ended(); }
  bool in_lock() const {
    return motion == rank_motion::locked || motion == rank_motion::deadlocked;
  }
  /// Asleep, and nothing works for it.
  bool stands() const { return motion == rank_motion::stands || in_lock(); }
  /// It goes on neither by itself nor through a child, as far as can be seen.
  bool stays() const {
    return stands() || motion == rank_motion::delayed || spins() || works() || awaits();
  }
  /// Others have the processors that it needs, or it is about to go.
  bool is_late() const {
    return motion == rank_motion::delayed || motion == rank_motion::starves || is_over();
  }
  /// In a part of a step that every step has. Elsewhere a script may be at anything: a metric of
  /// rank 0, a file, a service.
  bool in_step() const {
    return phase_now == diag::phase::input || phase_now == diag::phase::forward ||
           phase_now == diag::phase::backward || phase_now == diag::phase::optimizer;
  }
  /// It may be at work that no hook sees, or wait for storage that is slow. The rest is asleep in
  /// the middle of a step, or in a deadlock wherever it is, and nothing works for it.
  bool may_work() const {
    if (!stands() || phase_now == diag::phase::input || is_held_by_kernel())
      return true;
    return !in_step() && !in_lock();
  }
  bool over_limit() const { return limit > duration::zero() && idle >= limit; }
  bool says_collectives() const {
    return (feeds & static_cast<std::uint64_t>(diag::feed::collectives)) != 0;
  }
};

/// Of one whose process has ended: it stands nowhere and waits in nothing, and what it has entered
/// is all that it will enter. `idle` is the time since that was first known; `before`: what was
/// known until now.
rank_facts gone_rank(instant now, const rank_facts& before, rank_facts last);
/// Bounds everything: texts, rows, numbers.
rank_facts facts_of(instant now, std::uint32_t node, messages::RankProgress::Reader from,
                    communicator_names& names);

} // namespace troupe::actors
