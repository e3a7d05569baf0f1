#include "actors/master/diagnosis/diagnosis_core.hpp"

#include "actors/limits.hpp"
#include "actors/words.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

std::chrono::milliseconds ms_said(std::uint64_t ms) {
  return std::chrono::milliseconds(std::min<std::uint64_t>(ms, 1ull << 40));
}

/// Shorter than any limit, and longer than nearly all steps.
constexpr auto stood_least = 1s;
/// The order of collectives is compared this often while no case is open, and only where a rank has
/// been in one for as long as that.
constexpr auto order_looked_at_every = 300ms;

std::uint64_t entered_in(const rank_facts& f) {
  std::uint64_t sum = 0;
  for (const auto& row : f.rows)
    sum += row.entered;
  return sum;
}

} // namespace

diagnosis_core::diagnosis_core(messages::author a, diagnosis_policy policy)
    : diagnosis_core(std::move(a), policy, free_numbers{}) {}

diagnosis_core::diagnosis_core(messages::author a, diagnosis_policy policy, free_numbers from)
    : author_(std::move(a)), policy_(policy), last_question_(from.question - 1),
      last_dump_(from.dump - 1), stacks_budget_(policy_) {}

// ---- the world ----

diagnosis_core::effects diagnosis_core::sealed(instant, const msg<Sealed>& m) {
  effects out;
  auto body = m.read();
  auto world = body->getWorld();
  const generation which{world.getGeneration()};
  // The planner's answer of what runs may meet the seal itself, or the end of it.
  if (which == about_ || which == ended_)
    return out;
  forget();
  about_ = which;
  const auto size = std::min<std::size_t>(world.getWorldSize(), limits::ranks_diagnosed_max);
  for (auto each : world.getMembers()) {
    if (members_.size() >= limits::nodes_max)
      break;
    by_name_[each.getNode().cStr()] = static_cast<std::uint32_t>(members_.size());
    member one;
    one.node = each.getNode().cStr();
    one.first_rank = each.getFirstRank();
    one.slots = each.getSlots();
    members_.push_back(std::move(one));
  }
  ranks_.resize(size);
  slowness_.world(static_cast<std::uint32_t>(size));
  speed_.world(static_cast<std::uint32_t>(members_.size()));
  return checked(std::move(out));
}

diagnosis_core::effects diagnosis_core::ended(instant, generation which) {
  ended_ = std::max(ended_, which);
  if (which == about_)
    forget();
  return checked({});
}

void diagnosis_core::drop_case() {
  case_.reset();
  judged_.reset();
  order_looked_at_.reset();
  judge_due_ = waits_for_looks_ = false;
}

void diagnosis_core::forget() {
  members_.clear();
  by_name_.clear();
  ranks_.clear();
  names_.clear();
  slowness_.world(0);
  speed_.world(0);
  drop_case();
  last_number_ = 0;
  slow_numbers_.clear();
}

diagnosis_core::effects diagnosis_core::node_lost(instant, const msg<NodeLost>& m) {
  effects out;
  const auto at = by_name_.find(m.read()->getNode().cStr());
  // A node whose part is over may leave.
  if (at == by_name_.end() || members_[at->second].over)
    return out;
  members_[at->second].lost = true;
  // The planner ends this generation: it is known for what the ranks wait.
  TROUPE_RARE_IF(case_, "diagnosis: a node is lost while ranks stand still");
  drop_case();
  return checked(std::move(out));
}

// ---- reports ----

diagnosis_core::effects diagnosis_core::progress(instant now, const msg<ProgressReport>& m) {
  effects out;
  auto r = m.read();
  const auto at = by_name_.find(r->getNode().cStr());
  if (m.envelope().about != about_ || at == by_name_.end()) {
    TROUPE_RARE("diagnosis: a report of a generation that is over");
    return out;
  }
  // The planner has ended the generation there, or is about to hear why it ends.
  if (r->getOver() == ProgressReport::Over::BY_ORDER) {
    members_[at->second].lost = true;
    drop_case();
    return checked(std::move(out));
  }
  const bool went_on = take(now, at->second, *r, out);
  take_speed(out, now);
  // Of a lost node the planner knows, and ends the generation.
  const bool any_lost =
      std::any_of(members_.begin(), members_.end(), [](const auto& each) { return each.lost; });
  if (!case_ && any_suspect() && !any_lost)
    open(out, now, false);
  // What the others have said may be of another moment: all are asked.
  else if (!case_ && !any_lost && order_differs(now, at->second))
    open(out, now, true);
  // What the others have said may be of the time before: one that is released says so first.
  else if (case_ && went_on && any_suspect())
    ask(out, now, true);
  if (case_)
    consider(out, now);
  return checked(std::move(out));
}

bool diagnosis_core::order_differs(instant now, std::uint32_t reported) {
  const auto& m = members_[reported];
  const auto stuck = [](const rank_facts& f) {
    return std::any_of(f.rows.begin(), f.rows.end(), [](const auto& row) {
      return row.ends_known && row.waits() && row.in_it >= order_looked_at_every;
    });
  };
  const auto end = std::min<std::size_t>(ranks_.size(), m.first_rank + std::size_t{m.slots});
  if (m.first_rank >= end ||
      std::none_of(ranks_.begin() + m.first_rank, ranks_.begin() + static_cast<std::ptrdiff_t>(end),
                   stuck) ||
      (order_looked_at_ && now - *order_looked_at_ < order_looked_at_every))
    return false;
  order_looked_at_ = now;
  return !graph_of(ranks_, names_).out_of_order.empty();
}

bool diagnosis_core::take(instant now, std::uint32_t which, ProgressReport::Reader r,
                          effects& out) {
  auto& m = members_[which];
  m.reported = now;
  m.answers = r.getAnswers();
  m.suspect = r.getSuspect();
  bool went_on = false;
  m.lost = false;
  const auto end = std::min<std::size_t>(ranks_.size(), m.first_rank + std::size_t{m.slots});
  m.over = r.getOver() == ProgressReport::Over::ENDED_WELL;
  if (m.over)
    for (std::size_t rank = m.first_rank; rank < end; ++rank) {
      auto& f = ranks_[rank];
      f.node = which;
      f = gone_rank(now, f, f);
    }
  for (auto each : r.getRanks()) {
    const auto rank = each.getRank();
    // A node speaks for its own ranks.
    if (rank < m.first_rank || rank - m.first_rank >= m.slots || rank >= ranks_.size())
      continue;
    auto& f = ranks_[rank];
    const auto before = std::exchange(f, facts_of(now, which, each, names_));
    if (f.is_gone())
      f = gone_rank(now, before, f);
    f.steps_when_entered =
        entered_in(before) == entered_in(f) ? before.steps_when_entered : f.steps;
    went_on |= before.idle >= stood_least && f.idle < before.idle;
    take_busy(out, now, each);
  }
  return went_on;
}

void diagnosis_core::take_busy(effects& out, instant now, RankProgress::Reader r) {
  // In a standstill nothing that was measured says how fast a rank is.
  if (r.getBusySteps() == 0 || case_)
    return;
  straggler_score::sample s;
  s.rank = r.getRank();
  s.busy = std::chrono::microseconds(r.getBusyUs());
  s.usual = std::chrono::microseconds(r.getUsualBusyUs());
  s.steps = r.getBusySteps();
  s.within = ms_said(r.getBusyForMs());
  for (const auto& row : ranks_[s.rank].rows)
    s.pipelined |= row.kind == diag::collective::send || row.kind == diag::collective::recv;
  if (const auto c = slowness_.add(policy_, now, s))
    tell_slow(out, now, *c);
}

void diagnosis_core::take_speed(effects& out, instant now) {
  // In a standstill no step is made, and that is told already.
  if (case_ || ranks_.empty())
    return;
  const auto worse = speed_.add(now, ranks_.front().steps);
  if (!worse)
    return;
  const auto back = worse->smaller.nodes;
  log_line(out, log::level::warning, "scaling_worse",
           policy_.undoes_worse_scaling
               ? fmt::format("{}; the job is scaled back to at most {}",
                             comparison_in_words(*worse), back)
               : fmt::format("{}. actor-shell scale MIN:{} goes back; --undo-worse-scaling does so "
                             "by itself",
                             comparison_in_words(*worse), back),
           {{"nodes", std::int64_t{worse->now.nodes}},
            {"steps_per_second", worse->now.steps},
            {"smaller_nodes", std::int64_t{back}},
            {"smaller_steps_per_second", worse->smaller.steps}});
  if (policy_.undoes_worse_scaling)
    out.push_back(scale_back{back});
}

bool diagnosis_core::any_suspect() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& m) { return m.suspect; });
}

// ---- stragglers ----

void diagnosis_core::tell_slow(effects& out, instant, const straggler_score::change& c) {
  const auto rank = c.what.rank;
  if (c.begins) {
    // Of very many that are slow at once no line helps: that is how this job is.
    if (slow_numbers_.size() >= limits::stragglers_told_max)
      return;
    const auto sentence = sentence_of(c.what, ranks_[rank]);
    slow_numbers_[rank] = ++last_number_;
    send_diagnosed(out, last_number_, HangKind::STRAGGLER, {rank}, sentence, {}, {}, c.what.score);
    log_line(out, log::level::warning, "rank_slow", sentence);
    remember(sentence);
    return;
  }
  const auto known = slow_numbers_.find(rank);
  if (known == slow_numbers_.end())
    return;
  send_cleared(out, known->second, {});
  slow_numbers_.erase(known);
  log_line(out, log::level::notice, "rank_not_slow",
           fmt::format("rank {} is as fast as the others again", rank));
}

// ---- what is told ----

void diagnosis_core::send_diagnosed(effects& out, std::uint64_t number, HangKind kind,
                                    const std::vector<std::uint32_t>& culprits,
                                    const std::string& sentence,
                                    const std::vector<std::string>& evidence, duration stood,
                                    double score) {
  const auto m =
      author_
          .write<Diagnosed>(
              about_,
              [&](Diagnosed::Builder b) {
                b.setNumber(number);
                b.setKind(kind);
                auto list = b.initCulprits(static_cast<unsigned>(culprits.size()));
                for (unsigned i = 0; i < list.size(); ++i)
                  list.set(i, culprits[i]);
                b.setSentence(sentence);
                auto lines = b.initEvidence(static_cast<unsigned>(evidence.size()));
                for (unsigned i = 0; i < lines.size(); ++i)
                  lines.set(i, evidence[i]);
                b.setStoodMs(static_cast<std::uint64_t>(std::max(0.0, milliseconds_of(stood))));
                b.setScore(static_cast<std::uint32_t>(std::clamp(score * 1000.0, 0.0, 1e9)));
              })
          .any();
  out.push_back(say{all_nodes(), m});
  if (policy_.action != hang_action::tell)
    out.push_back(notify{m});
}

void diagnosis_core::send_cleared(effects& out, std::uint64_t number, duration after) {
  const auto m = author_
                     .write<Cleared>(about_,
                                     [&](Cleared::Builder b) {
                                       b.setNumber(number);
                                       b.setAfterMs(static_cast<std::uint64_t>(
                                           std::max(0.0, milliseconds_of(after))));
                                     })
                     .any();
  out.push_back(say{all_nodes(), m});
  if (policy_.action != hang_action::tell)
    out.push_back(notify{m});
}

std::vector<node_name> diagnosis_core::all_nodes() const {
  std::vector<node_name> all;
  all.reserve(members_.size());
  for (const auto& m : members_)
    all.push_back(m.node);
  return all;
}

std::vector<diagnosis_core::part> diagnosis_core::parts() const {
  std::vector<part> all;
  all.reserve(members_.size());
  for (const auto& m : members_)
    all.push_back({m.node, m.first_rank, m.slots});
  return all;
}

diagnosis_core::effects diagnosis_core::checked(effects out) const {
  invariant(members_.size() == by_name_.size() || members_.empty(), "two nodes of one name");
  invariant(ranks_.size() <= limits::ranks_diagnosed_max, "more ranks than a world has");
  invariant(!case_ || !members_.empty(), "a case of no world");
  invariant(history_.size() <= limits::diagnoses_kept, "history without bound");
  invariant(slow_numbers_.size() <= limits::stragglers_told_max, "slow ranks without bound");
  if (!case_)
    return out;
  invariant(case_->told.has_value() == (case_->is != stage::open), "a stage without its verdict");
  invariant(case_->question <= last_question_, "a case that waits for no question");
  if (const auto& told = case_->told) {
    invariant(told->number != 0 && told->number <= last_number_, "a verdict without a number");
    invariant(told->what.kind == HangKind::LINK || !told->what.culprits.empty(),
              "a verdict without a culprit");
    invariant(std::all_of(told->what.culprits.begin(), told->what.culprits.end(),
                          [this](std::uint32_t r) { return r < ranks_.size(); }),
              "a culprit that is no rank");
  }
  return out;
}

void diagnosis_core::remember(const std::string& sentence) {
  history_.push_back(sentence);
  if (history_.size() > limits::diagnoses_kept)
    history_.pop_front();
}

void diagnosis_core::log_line(effects& out, log::level severity, const char* name,
                              const std::string& text, decltype(log::event::fields) fields) const {
  out.push_back(note{{severity, name, text, std::move(fields)}});
}

std::string diagnosis_core::in_words() const {
  if (ranks_.empty())
    return "no generation is watched";
  if (case_ && case_->told)
    return fmt::format("a standstill: {}", history_.empty() ? "" : history_.back());
  std::size_t known = 0, suspects = 0;
  for (const auto& f : ranks_) {
    known += f.known ? 1 : 0;
    suspects += f.over_limit() ? 1 : 0;
  }
  auto text = fmt::format("{} of {} known", known, counted(ranks_.size(), "rank"));
  if (suspects != 0)
    text += fmt::format(", {} standing still", suspects);
  if (!slow_numbers_.empty())
    text += fmt::format(", {} slow", slow_numbers_.size());
  if (const auto known_speed = speed_.measured())
    text += fmt::format(", {:.3g} steps a second", known_speed->steps);
  return text;
}

} // namespace troupe::actors
