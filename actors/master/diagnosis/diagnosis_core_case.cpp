// What diagnosis_core does about a standstill, from the first report of it until training goes on.
//
// All ranks of a job stall within a step of each other, so their nodes report at nearly the same
// time. The others are asked. Until all have said where their ranks are nothing is certain: the one
// that is missing may be the culprit.

#include "actors/limits.hpp"
#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "actors/words.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

/// A report that came so shortly before the case is still of it.
constexpr auto still_fresh = 100ms;
/// Of thousands of nodes that report at once not each report is judged.
constexpr std::size_t many_ranks = 512;
constexpr auto judge_again_after = 50ms;

} // namespace

void diagnosis_core::open(effects& out, instant now, bool by_order) {
  case_ = open_case{};
  case_->since = now;
  case_->by_order = by_order;
  case_->asks_every = policy_.ask_again_first;
  // An order is compared by reports of one moment.
  ask(out, now, by_order);
}

/// Those that have not reported since; or everyone, where what was said before is worth nothing any
/// more. The answer says the number of the question.
void diagnosis_core::ask(effects& out, instant now, bool everyone) {
  const auto question = ++last_question_;
  case_->question = question;
  case_->asked = now;
  case_->answers_only = everyone;
  if (!case_->silent_told && !case_->silent_at) {
    case_->silent_at = now + policy_.answer_within;
    case_->silent_question = question;
    case_->silent_asked = now;
  }
  case_->ask_again = now + case_->asks_every;
  case_->asks_every = std::min<duration>(case_->asks_every * 3 / 2, policy_.ask_again_most);
  std::vector<node_name> nodes;
  for (const auto& m : members_)
    if (!m.over && (everyone || !m.reported || now - *m.reported > still_fresh || !m.suspect))
      nodes.push_back(m.node);
  if (nodes.empty())
    return;
  out.push_back(
      say{std::move(nodes),
          author_.write<ProgressWanted>(about_, [question](auto b) { b.setQuestion(question); })
              .any()});
}

bool diagnosis_core::is_fresh(const member& m) const {
  if (m.over || m.answers >= case_->question)
    return true;
  return !case_->answers_only && m.reported &&
         (*m.reported >= case_->asked || (m.suspect && case_->asked - *m.reported <= still_fresh));
}

/// Since a question that is old enough they have said nothing.
std::vector<node_name> diagnosis_core::silent() const {
  std::vector<node_name> nodes;
  for (const auto& m : members_)
    if (!m.over && m.answers < case_->silent_question &&
        (!m.reported || *m.reported < case_->silent_asked))
      nodes.push_back(m.node);
  return nodes;
}

/// With all that is known by now.
void diagnosis_core::consider(effects& out, instant now) {
  if (!any_suspect() && !case_->by_order)
    return close(out, now);
  if (ranks_.size() >= many_ranks && judged_ && now - *judged_ < judge_again_after) {
    judge_due_ = true;
    return;
  }
  judge_due_ = waits_for_looks_ = false;
  // The missing report will be judged when it comes.
  if (!std::all_of(members_.begin(), members_.end(), [this](const auto& m) { return is_fresh(m); }))
    return;
  // The next question has its own time to be answered in.
  case_->silent_at.reset();
  judged_ = now;
  for (auto& f : ranks_)
    if (f.is_gone())
      f = gone_rank(now, f, f);
  // Several ranks may have failed at once, and some not been looked at yet.
  const bool patient = !case_->told && now < case_->since + policy_.grace;
  const auto v = judge(policy_, ranks_, names_, patient, survived_);
  if (!any_suspect() && !v)
    return close(out, now);
  waits_for_looks_ = patient && !v;
  if (!v)
    return;
  if (!case_->told || !case_->told->what.same_as(*v))
    return tell(out, now, *v);
  case_->told->what = *v;
  case_->told->seen = now;
  act(out, now);
}

/// A second verdict of a case corrects the first, under the same number.
void diagnosis_core::tell(effects& out, instant now, const verdict& v) {
  const bool again = case_->told.has_value();
  const auto number = again ? case_->told->number : ++last_number_;
  // Each correction costs all nodes a message.
  const auto corrections = again ? case_->told->corrections + 1 : 0;
  if (corrections > limits::corrections_max)
    return;
  told_verdict told{v, number, now, now, {}, false, corrections};
  if (!v.culprits.empty()) {
    told.phase = ranks_[v.first].phase_now;
    told.stopped = ranks_[v.first].is_stopped() || ranks_[v.first].is_gone();
  }
  case_->told = std::move(told);
  if (!again)
    case_->is.become(stage::told);
  const auto sentence = sentence_of(v, ranks_, names_);
  send_diagnosed(out, number, v.kind, v.culprits, sentence, evidence_of(v, ranks_), v.stood, 0);
  log_line(out, log::level::warning, "hang", sentence, {{"stood_ms", milliseconds_of(v.stood)}});
  for (const auto& line : evidence_of(v, ranks_))
    log_line(out, log::level::notice, "hang_evidence", line);
  if (again)
    history_.pop_back();
  remember(sentence);
  if (!again && stacks_budget_.take(now))
    want_stacks(out);
}

diagnosis_core::effects diagnosis_core::stacks_requested() {
  effects out;
  if (!members_.empty())
    want_stacks(out);
  return out;
}

/// No number is given twice, in no generation: each names a directory.
void diagnosis_core::want_stacks(effects& out) {
  const auto within = policy_.stacks_within;
  const auto number = ++last_dump_;
  out.push_back(say{all_nodes(), author_
                                     .write<StacksWanted>(about_,
                                                          [&](StacksWanted::Builder b) {
                                                            b.setDump(number);
                                                            b.setWithinMs(
                                                                static_cast<std::uint64_t>(
                                                                    milliseconds_of(within)));
                                                          })
                                     .any()});
}

duration diagnosis_core::confirm_at(instant now) const {
  return acted_ && now - *acted_ < policy_.confirm_calm_after ? confirm_ : policy_.confirm;
}

/// To end a process cannot be taken back. So: only a hang that has a culprit, which does not move;
/// after the verdict has stood for a while; and of a rank that may be at work not for minutes. A
/// rank that is stopped, or in another collective than the rest, or asleep in the middle of a step
/// while nothing works for it, or in a deadlock, is at no work.
bool diagnosis_core::may_act(instant now, const told_verdict& told) const {
  const auto& v = told.what;
  const bool of_hang = v.kind == HangKind::NOT_ENTERED || v.kind == HangKind::OTHER_COLLECTIVE ||
                       v.kind == HangKind::ALONE;
  if (policy_.action != hang_action::act || case_->is != stage::told || !of_hang ||
      v.culprits.empty() || v.moves || v.all_alike || now - told.at < confirm_at(now))
    return false;
  return v.stood >= v.act_least;
}

void diagnosis_core::act(effects& out, instant now) {
  const auto& v = case_->told->what;
  if (!may_act(now, *case_->told))
    return;
  case_->is.become(stage::acted);
  confirm_ = std::min<duration>(
      std::chrono::duration_cast<duration>(confirm_at(now) * policy_.confirm_factor),
      policy_.confirm_most);
  acted_ = now;
  const auto sentence = sentence_of(v, ranks_, names_);
  for (const auto rank : v.culprits) {
    const auto& m = members_[ranks_[rank].node];
    out.push_back(say{{m.node},
                      author_
                          .write<EndWorker>(about_,
                                            [&](EndWorker::Builder b) {
                                              b.setRank(rank);
                                              b.setWhy(sentence);
                                            })
                          .any()});
  }
  log_line(out, log::level::warning, "hang_ended",
           fmt::format("rank{} {} ended, so that the job starts again",
                       v.culprits.size() == 1 ? "" : "s",
                       rank_runs(v.culprits) + (v.culprits.size() == 1 ? " is" : " are")));
}

/// The ranks that were suspected go on.
void diagnosis_core::close(effects& out, instant now) {
  if (const auto& told = case_->told) {
    const auto stood = told->what.stood + (now - told->seen);
    // What was told was no hang. A stop ends by a signal, and another order of collectives never
    // does: both say nothing of what this job may do again.
    if (case_->is == stage::told && !told->stopped &&
        (told->what.kind == HangKind::NOT_ENTERED || told->what.kind == HangKind::ALONE)) {
      TROUPE_RARE("diagnosis: a phase is given longer, since it was survived");
      auto& longest = survived_[static_cast<std::size_t>(told->phase)];
      longest = std::max(longest, stood);
    }
    send_cleared(out, told->number, stood);
    log_line(out, log::level::notice, "hang_over",
             fmt::format("the standstill of {} is over after {}",
                         told->what.culprits.empty()
                             ? std::string("the network")
                             : (told->what.culprits.size() == 1 ? "rank " : "ranks ") +
                                   rank_runs(told->what.culprits),
                         troupe::in_words(stood)));
  }
  for (auto& m : members_)
    m.suspect = false;
  drop_case();
}

void diagnosis_core::tell_silent(effects& out) {
  const auto nodes = silent();
  if (nodes.empty() || case_->silent_told)
    return;
  case_->silent_told = true;
  log_line(out, log::level::notice, "hang_unexplained",
           fmt::format("training stands still, and {} {} not say how far {} ranks are: {} lease "
                       "decides",
                       few_of(nodes), nodes.size() == 1 ? "does" : "do",
                       nodes.size() == 1 ? "its" : "their", nodes.size() == 1 ? "its" : "their"));
}

diagnosis_core::effects diagnosis_core::tick(instant now) {
  effects out;
  if (!case_)
    return out;
  if (case_->silent_at && now >= *case_->silent_at) {
    case_->silent_at.reset();
    tell_silent(out);
  }
  if (now >= case_->ask_again)
    ask(out, now, false);
  if (judge_due_ || waits_for_looks_)
    consider(out, now);
  return checked(std::move(out));
}

std::optional<instant> diagnosis_core::next_wakeup() const {
  if (!case_)
    return std::nullopt;
  auto next = case_->ask_again;
  if (case_->silent_at)
    next = std::min(next, *case_->silent_at);
  if (waits_for_looks_)
    next = std::min(next, case_->since + policy_.grace);
  if (judge_due_ && judged_)
    next = std::min(next, *judged_ + judge_again_after);
  return next;
}

} // namespace troupe::actors
