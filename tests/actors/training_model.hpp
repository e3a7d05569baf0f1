#pragma once

#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "actors/node_supervisor/hang_watchdog/hang_watchdog_core.hpp"
#include "runtime/base/random.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// What a look at a rank from outside finds.
struct activity {
  char state = 'R';
  double cpu = 1;          ///< cores
  bool io = false;         ///< bytes flow
  bool stacks_move = true; ///< functions change
  bool traced = false;
  std::string place = "train.py:10 (forward)";
  std::vector<diag::child_look> children;
  bool children_move = false;
  diag::awaited awaits = diag::awaited::lock; ///< while it uses no processor
  bool line_moves = false;                    ///< within its innermost function
  double had = 1;                             ///< of the cores that it wants, it gets this part
  double taken = 0;                           ///< …of which a host takes this part, uncounted
  bool ends = false;                          ///< its interpreter is being closed
  bool joins = false;                         ///< it waits for another thread by Python's means
  /// What another thread is, and what that waits for.
  diag::thread_role beside = diag::thread_role::own;
  diag::awaited beside_awaits = diag::awaited::nothing;
  /// Of other threads of the process: programs that one starts, and cores and bytes that they use.
  bool starts_programs = false;
  double beside_cpu = 0;
  bool beside_io = false;
  double delayed = 0; ///< cores that its other threads want and do not get

  static activity waits() { return {'S', 0, false, false, false, "wait() of gloo", {}, false}; }
  static activity stopped() {
    return {'T', 0, false, false, false, "train.py:10 (forward)", {}, false};
  }
  static activity asleep(std::string where) {
    return {'S', 0, false, false, false, std::move(where), {}, false};
  }
  static activity loops(std::string where) {
    activity a{'R', 1, false, false, false, std::move(where), {}, false};
    a.line_moves = true;
    return a;
  }
  /// In one call of C.
  static activity computes(std::string where) {
    return {'R', 1, false, false, false, std::move(where), {}, false};
  }
  /// Until a service answers, a timer is due or a program that it has started ends.
  static activity awaits_outside(std::string where, diag::awaited what = diag::awaited::outside) {
    activity a{'S', 0, false, false, false, std::move(where), {}, false};
    a.awaits = what;
    return a;
  }
  /// In result(), or in wait() of an event, while another thread waits for something outside.
  static activity awaits_thread(std::string where, diag::thread_role which) {
    auto a = asleep(std::move(where));
    a.joins = true;
    a.beside = which;
    a.beside_awaits = diag::awaited::outside;
    return a;
  }
  static activity awaits_nothing(std::string where) {
    auto a = asleep(std::move(where));
    a.joins = true;
    return a;
  }
  /// The rest of the machine has the processors.
  activity starved(double part) const {
    auto a = *this;
    a.had = part;
    return a;
  }
  activity beside_programs() const {
    auto a = *this;
    a.starts_programs = true;
    a.beside_cpu = 0.08;
    return a;
  }
  activity beside_uploads() const {
    auto a = *this;
    a.beside_io = true;
    a.beside_cpu = 0.7;
    return a;
  }
  static activity held(std::string where) {
    return {'D', 0, false, false, false, std::move(where), {}, false};
  }
};

/// Something beside the steps: a checkpoint, an evaluation, a pause.
struct interlude {
  diag::phase in = diag::phase::other;
  duration lasts{};
  activity looks;
  /// Its loader gives a batch this often, which the page shows. 0: it does not.
  duration batches{};
};

/// A job as the two decisions see it: ranks that make steps and wait for each other in collectives,
/// what they write into their pages, what looks at them find, and messages on their way. Virtual
/// time, and chance from one seed.
class training_model {
 public:
  struct group {
    std::string name;
    std::vector<std::uint32_t> members;
  };
  struct shape {
    std::uint32_t ranks = 4;
    std::uint32_t per_node = 4;
    std::vector<group> groups; ///< in the order in which a step uses them; empty: all ranks
    bool begins_warm = false;  ///< it has made a thousand steps of `usual` before
    duration usual = 100ms;
    bool says_ends = true;
    bool says_collectives = true;
    /// A group's row is there when the group is made; else when the rank first enters it.
    bool says_groups = true;
    /// Steps are none of PyTorch's optimizers, and phases none of its hooks: an own loop.
    bool without_steps = false;
    bool two_by_two = false; ///< its groups' collectives are messages between two ranks
  };
  struct said {
    instant at;
    messages::HangKind kind;
    std::vector<std::uint32_t> culprits;
    std::string sentence;
  };

  training_model(std::uint64_t seed, shape s, diagnosis_policy policy = {},
                 watch_policy watch = {});

  // The script of the training; nothing: a step takes `usual`, most of it computing.
  std::function<duration(std::uint32_t r, std::uint64_t step)> compute;
  std::function<duration(std::uint32_t r, std::uint64_t step)> input;
  std::function<std::optional<interlude>(std::uint32_t r, std::uint64_t step)> before_step;
  /// Of a collective, beyond the arrival of the last rank.
  std::function<duration(std::uint64_t step)> network;

  /// Of the machine that a rank is on: changes what a look at the rank finds.
  std::function<activity(std::uint32_t r, activity)> machine;
  /// Between a node and the master.
  duration slowest_message = 600us;

  void at(duration after, std::function<void()> what);
  void run(duration how_long);

  // What goes wrong. `began` is when it has taken hold.
  void freeze(std::uint32_t r, activity looks);
  void thaw(std::uint32_t r);
  /// Its next batch never comes.
  void block_input(std::uint32_t r, activity looks);
  /// Its next collective is another kind; or it does not enter it and goes on without.
  void mistake_kind(std::uint32_t r);
  void skip_collectives(std::uint32_t r);
  void swap_groups(std::uint32_t r);
  /// Collectives are entered and none ends.
  void cut(std::uint32_t r);
  /// Looks find these peers unanswered from now on.
  void unanswered(std::uint32_t r, std::vector<std::string> peers);
  void freeze_inside(std::uint32_t r, activity looks);
  /// Its process has ended well; a node tells when all of it have.
  void end(std::uint32_t r);
  /// Its processes are being ended by order, which the master knows later or never.
  void drain_node(std::uint32_t n);
  void slow_down(std::uint32_t r, double factor) {
    ranks_[r].factor = factor;
    began = now;
  }
  void pause_node(std::uint32_t n, duration how_long);
  void pause_all(duration how_long);
  void machine_slept(duration how_long) { slept_ += how_long; }
  void mute_node(std::uint32_t n) { nodes_[n]->mute = true; }
  void restart(duration down);

  instant now;
  std::optional<instant> began;
  std::vector<said> verdicts;
  std::vector<std::uint32_t> ended; ///< by EndWorker
  std::size_t dumps = 0;
  std::size_t reports = 0;
  std::size_t cleared = 0;
  std::size_t reads = 0;
  std::uint64_t steps() const;
  std::vector<std::string> notes;

 private:
  enum class op : std::uint8_t { begin, input, compute, collective, end };
  struct rank {
    diag::page_view page;
    op at = op::begin;
    std::size_t group_at = 0;
    std::uint32_t node = 0;
    activity looks;
    bool frozen = false, gone = false;
    bool held = false; ///< an event of it waits until it is thawed
    double factor = 1;
    std::optional<activity> input_never;
    bool wrong_kind = false, skips = false, swaps = false;
    std::vector<std::uint32_t> groups; ///< that it is a member of, by number
    instant look_cpu_at;
    duration cpu{};
    duration wanted{}, beside_cpu{}, delayed{};
    duration not_over{}; ///< it has waited for a processor since it last had one
    std::uint64_t io = 0, beside_io = 0;
    std::vector<std::string> peers; ///< that do not answer
    std::uint64_t made = 0;         ///< steps, whether its page counts them or not
    std::uint64_t noted_ns = 0;
    std::uint64_t life = 0;
  };
  struct node {
    explicit node(hang_watchdog_core c) : core(std::move(c)) {}
    hang_watchdog_core core;
    std::uint32_t first = 0, count = 0;
    instant paused_until;
    std::optional<instant> wakes;
    bool mute = false;
    instant last_report, last_order; ///< they arrive
  };
  struct collective_state {
    std::uint64_t number = 0; ///< that is being entered
    std::uint32_t here = 0;
    bool broken = false;
  };
  struct event {
    instant at;
    std::uint64_t order;
    enum kind_t : std::uint8_t { of_rank, ends, of_node, of_master, other } kind;
    std::uint32_t which = 0;
    std::uint64_t life = 0;
    std::function<void()> what;
    bool operator<(const event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void push(instant when, event::kind_t kind, std::uint32_t which, std::uint64_t life = 0,
            std::function<void()> what = {});
  void start_generation();
  void step_rank(std::uint32_t r);
  diag::communicator_view& row_of(rank& k, std::uint32_t g) const;
  void enter(std::uint32_t r, std::uint32_t g);
  void end_collective(std::uint32_t g);
  void make_step(std::uint32_t r);
  void set_phase(rank& k, diag::phase p);
  void tell_no_processes(node& n, bool ended_well);
  void note(rank& k);
  void perform(node& n, const hang_watchdog_core::effects& effects);
  void perform(const diagnosis_core::effects& effects);
  void to_node(std::uint32_t which, messages::any_msg m);
  void arm_node(std::uint32_t which);
  void arm_master();
  diag::process_look look(std::uint32_t r);
  diag::page_reading reading_of(std::uint32_t r, std::uint32_t local) const;
  std::uint64_t ns() const;
  duration latency();
  instant arrives(instant& last);

  shape shape_;
  random_source chance_;
  std::vector<rank> ranks_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::vector<collective_state> collectives_;
  diagnosis_core master_;
  std::optional<instant> master_wakes_;
  messages::author planner_{"master/planner"};
  std::uint64_t generation_ = 0;
  std::uint64_t order_ = 0;
  duration slept_{};
  std::priority_queue<event> events_;
};

} // namespace troupe::actors::testing
