#pragma once

#include "actors/master/diagnosis/diagnosis_policy.hpp"
#include "actors/master/diagnosis/rank_facts.hpp"
#include "actors/master/diagnosis/stacks_budget.hpp"
#include "actors/master/diagnosis/straggler_score.hpp"
#include "actors/master/diagnosis/throughput.hpp"
#include "actors/master/diagnosis/verdict.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Compares how far all ranks are, and names the one that keeps the others waiting.
///
/// A hang has no message: all processes are alive and silent, and the job ends by a timeout of its
/// library half an hour later, which blames the ranks that waited. One node's report of a
/// standstill opens a case: the others are asked, and when all have said where their ranks are the
/// verdict follows from all together. A wrong verdict is worse than a late one, so whatever moves
/// is left alone for long, and a node that does not answer is left to its lease.
///
/// One case at a time. Nothing here outlives the master: the planner says which world runs, and the
/// nodes' next reports say all else.
class diagnosis_core {
 public:
  /// To these nodes; lost if one has no link.
  struct say {
    std::vector<node_name> to;
    messages::any_msg message;
  };
  /// Diagnosed and Cleared within the master, with `hang_action::notify` and above: for the hook.
  struct notify {
    messages::any_msg message;
  };
  /// To the planner: no larger worlds than of so many nodes from now on.
  struct scale_back {
    std::uint32_t nodes_max = 0;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<say, notify, scale_back, note>;
  using effects = std::vector<effect>;

  /// Numbers that are free: earlier ones may be in directories and in nodes' answers already.
  struct free_numbers {
    std::uint64_t dump = 1;
    std::uint64_t question = 1;
  };
  /// A node's part of the world that runs.
  struct part {
    node_name node;
    std::uint32_t first_rank = 0;
    std::uint32_t slots = 0;
  };

  explicit diagnosis_core(messages::author author, diagnosis_policy policy = {});
  diagnosis_core(messages::author author, diagnosis_policy policy, free_numbers from);

  /// A new generation: all that is known of an older one is dropped, and an open case with it. One
  /// that is known, or is known to have ended, changes nothing: after a restart it is told twice.
  effects sealed(instant now, const messages::msg<messages::Sealed>& m);
  effects progress(instant now, const messages::msg<messages::ProgressReport>& m);
  /// Its lease has decided; the planner knows. A case that waited for it is closed.
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);
  /// A part of this generation has failed or was stopped, and the rest follows: nothing is watched
  /// until the next one is sealed.
  effects ended(instant now, generation which);
  /// A person wants the stacks of all ranks: StacksWanted to all nodes; nothing while no generation
  /// runs. It costs no hang its picture.
  effects stacks_requested();
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  std::string in_words() const;
  generation about() const { return about_; }
  std::vector<part> parts() const;
  /// Told in this master's life, the newest last; at most limits::diagnoses_kept.
  const std::deque<std::string>& history() const { return history_; }

 private:
  struct member {
    node_name node;
    std::uint32_t first_rank = 0;
    std::uint32_t slots = 0;
    /// The newest report came, and which question it answers.
    std::optional<instant> reported;
    std::uint64_t answers = 0;
    bool suspect = false;
    bool lost = false;
    bool over = false; ///< all its processes have ended well
  };
  /// Of a case.
  enum class stage : std::uint8_t {
    open,  ///< the nodes are asked; what they say explains nothing yet
    told,  ///< there is a verdict, which a later one may correct
    acted, ///< the culprits' processes are ended: no second time
  };
  static constexpr phase_table<stage> stages{"a case",
                                             {{stage::open, "open", {stage::told}},
                                              {stage::told, "told", {stage::acted}},
                                              {stage::acted, "acted", {}}}};

  struct told_verdict {
    verdict what;
    std::uint64_t number = 0;
    instant at;
    instant seen;         ///< `what` is of this moment
    diag::phase phase{};  ///< of the rank that the sentence is about
    bool stopped = false; ///< …which a signal had stopped
    std::uint32_t corrections = 0;
  };
  struct open_case {
    phase_of<stages> is{stage::open};
    instant since;
    std::uint64_t question = 0;
    instant asked;
    /// No rank needs to be suspected for it: two are in different collectives of one number.
    bool by_order = false;
    /// A report from before the question counts for nothing.
    bool answers_only = false;
    instant ask_again;
    duration asks_every{};
    /// Nodes that have not answered by then are told once.
    std::optional<instant> silent_at;
    std::uint64_t silent_question = 0; ///< …this one, which was asked then:
    instant silent_asked;
    bool silent_told = false;
    std::optional<told_verdict> told; ///< with stage::told and after
  };

  std::optional<std::uint32_t> member_named(const node_name& node) const;
  /// Whether a rank that stood has gone on.
  bool take(instant now, std::uint32_t which, messages::ProgressReport::Reader r, effects& out);
  void take_busy(effects& out, instant now, messages::RankProgress::Reader r);
  void take_speed(effects& out, instant now);
  bool any_suspect() const;
  /// Two ranks are in different collectives of one number: no limit has to pass for that.
  bool order_differs(instant now, std::uint32_t reported);
  bool is_fresh(const member& m) const;
  std::vector<node_name> silent() const;
  void open(effects& out, instant now, bool by_order);
  void ask(effects& out, instant now, bool everyone);
  void close(effects& out, instant now);
  void drop_case();
  /// With what is known by now: a verdict, a correction of the last one, or nothing yet.
  void consider(effects& out, instant now);
  void tell(effects& out, instant now, const verdict& v);
  void tell_slow(effects& out, instant now, const straggler_score::change& c);
  void send_diagnosed(effects& out, std::uint64_t number, messages::HangKind kind,
                      const std::vector<std::uint32_t>& culprits, const std::string& sentence,
                      const std::vector<std::string>& evidence, duration stood, double score);
  void send_cleared(effects& out, std::uint64_t number, duration after);
  void act(effects& out, instant now);
  bool may_act(instant now, const told_verdict& told) const;
  duration confirm_at(instant now) const;
  /// At the end of each event: what holds whatever came.
  effects checked(effects out) const;
  void want_stacks(effects& out);
  void tell_silent(effects& out);
  std::vector<node_name> all_nodes() const;
  void forget();
  void remember(const std::string& sentence);
  void log_line(effects& out, log::level severity, const char* name, const std::string& text,
                decltype(log::event::fields) fields = {}) const;

  messages::author author_;
  diagnosis_policy policy_;
  generation about_;
  generation ended_;            ///< the newest of which that was heard
  std::vector<member> members_; ///< by first rank; bounded by limits::nodes_max
  std::map<node_name, std::uint32_t> by_name_;
  std::vector<rank_facts> ranks_; ///< bounded by limits::ranks_diagnosed_max
  communicator_names names_;
  straggler_score slowness_;
  throughput speed_;
  std::optional<open_case> case_;
  std::optional<instant> judged_; ///< the open case was
  std::optional<instant> order_looked_at_;
  bool judge_due_ = false;
  bool waits_for_looks_ = false;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_question_ = 0;
  std::uint64_t last_dump_ = 0;
  std::map<std::uint32_t, std::uint64_t> slow_numbers_; ///< by rank: the diagnosis of a straggler
  stacks_budget stacks_budget_;
  /// What was told of a rank and passed, by the phase it was in. It outlives generations: the next
  /// one comes to the same places.
  survived_phases survived_{};
  /// Of the next verdict for which a process is ended; and when that was last done.
  duration confirm_{};
  std::optional<instant> acted_;
  std::deque<std::string> history_;
};

} // namespace troupe::actors
