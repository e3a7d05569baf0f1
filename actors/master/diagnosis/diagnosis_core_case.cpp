// What diagnosis_core does about a standstill, from the first report of it until training goes on.
//
// All ranks of a job stall within a step of each other, so their nodes report at nearly the same
// time. The others are asked. Until all have said where their ranks are nothing is certain: the one
// that is missing may be the culprit.

#include "actors/limits.hpp"
#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "actors/words.hpp"

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

void diagnosis_core::open(effects& out, instant now) {
  case_ = open_case{};
  case_->since = now;
  case_->asks_every = policy_.ask_again_first;
  ask(out, now, false);
}

/// Those that have not reported since; or everyone, where what was said before is worth nothing any
/// more. The answer says the number of the question.
void diagnosis_core::ask(effects& out, instant now, bool everyone) {
  const auto question = ++last_question_;
  case_->question = question;
  case_->asked = now;
  case_->answers_only = everyone;
  if (!case_->silent_told && !case_->silent_at)
    case_->silent_at = now + policy_.answer_within;
  case_->ask_again = now + case_->asks_every;
  case_->asks_every = std::min<duration>(case_->asks_every * 3 / 2, policy_.ask_again_most);
  std::vector<node_name> nodes;
  for (const auto& m : members_)
    if (everyone || !m.reported || now - *m.reported > still_fresh || !m.suspect)
      nodes.push_back(m.node);
  if (nodes.empty())
    return;
  out.push_back(
      say{std::move(nodes),
          author_.write<ProgressWanted>(about_, [question](auto b) { b.setQuestion(question); })
              .any()});
}

bool diagnosis_core::is_fresh(const member& m) const {
  if (m.answers >= case_->question)
    return true;
  return !case_->answers_only && m.reported &&
         (*m.reported >= case_->asked || (m.suspect && case_->asked - *m.reported <= still_fresh));
}

std::vector<node_name> diagnosis_core::silent() const {
  std::vector<node_name> nodes;
  for (const auto& m : members_)
    if (!is_fresh(m))
      nodes.push_back(m.node);
  return nodes;
}

/// With what is known by now.
void diagnosis_core::consider(effects& out, instant now) {
  if (!any_suspect())
    return close(out, now);
  if (ranks_.size() >= many_ranks && judged_ && now - *judged_ < judge_again_after) {
    judge_due_ = true;
    return;
  }
  judge_due_ = waits_for_looks_ = false;
  // The missing report will be judged when it comes.
  if (!std::all_of(members_.begin(), members_.end(), [this](const auto& m) { return is_fresh(m); }))
    return;
  judged_ = now;
  // Several ranks may have failed at once, and some not been looked at yet.
  const bool patient = !case_->told && now < case_->since + policy_.grace;
  const auto v = judge(policy_, ranks_, names_, patient);
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
  const auto acted = again && case_->told->acted;
  if (corrections > limits::corrections_max)
    return;
  case_->told = told_verdict{v, number, now, now, acted, corrections};
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

/// Only a hang that has a culprit which does not move, once for each case, and not before the
/// verdict has stood for a while: to end a process cannot be taken back.
void diagnosis_core::act(effects& out, instant now) {
  auto& told = *case_->told;
  const auto& v = told.what;
  const bool of_hang = v.kind == HangKind::NOT_ENTERED || v.kind == HangKind::OTHER_COLLECTIVE ||
                       v.kind == HangKind::ALONE;
  if (policy_.action != hang_action::act || told.acted || !of_hang || v.culprits.empty() ||
      v.moves || v.all_alike || now - told.at < confirm_at(now))
    return;
  told.acted = true;
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
  return out;
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
