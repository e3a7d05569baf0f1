#include "actors/master/diagnosis/verdict.hpp"

#include <algorithm>
#include <map>

namespace troupe::actors {

using messages::HangKind;

namespace {

/// Made while others wait for it, so many steps mean that it goes on without them.
constexpr std::uint64_t steps_alone = 3;
/// An unusual state of very few ranks stands out; one of many is how this job works.
bool stands_out(std::size_t some, std::size_t all) {
  return some != 0 && 2 * some < all;
}

bool writes_out(const rank_facts& f) {
  return f.is_held_by_kernel() && f.place.find("sync") != std::string::npos;
}

/// One that stands is looked at; one that is at work is not.
bool not_looked_at(const rank_facts& f) {
  return f.state == 0 && f.idle >= 300ms;
}

class judge_of {
 public:
  judge_of(const diagnosis_policy& policy, const std::vector<rank_facts>& ranks,
           const communicator_names& names, bool patient, const survived_phases& survived)
      : policy_(policy), ranks_(ranks), patient_(patient), survived_(survived),
        graph_(graph_of(ranks, names)) {}

  std::optional<verdict> operator()() {
    if (std::any_of(ranks_.begin(), ranks_.end(), [](const auto& f) { return f.traced; }))
      return std::nullopt;
    // No time makes two collectives of one number the same.
    if (!graph_.out_of_order.empty())
      return other_collective(graph_.out_of_order);
    if (std::none_of(ranks_.begin(), ranks_.end(), [](const auto& f) { return f.over_limit(); }))
      return std::nullopt;
    if (auto v = between_two())
      return v;
    if (!graph_.outside.empty())
      return not_entered();
    if (!graph_.inside.empty())
      return entered_by_all();
    if (!graph_.in_circle.empty())
      return in_circle();
    return alone();
  }

 private:
  using list = std::vector<std::uint32_t>;

  /// How long it must stand before it may be called the culprit.
  duration hold(const rank_facts& f) const {
    if (f.is_stopped())
      return {};
    const auto moves = std::chrono::duration_cast<duration>(f.limit * policy_.moves_factor);
    // The user knows better what is usual.
    if (policy_.fixed_limit)
      return f.stays() || f.is_over() ? f.limit : moves;
    if (writes_out(f))
      return std::max(f.limit, policy_.writes_out_least);
    const auto least = std::max(f.limit, survived_in(f));
    if (f.works() || (f.spins() && !f.in_step()))
      return std::max<duration>(least, policy_.works_least);
    if (f.awaits())
      return std::max<duration>(least, policy_.awaits_least);
    if (f.stays() || is_missed(f))
      return least;
    return std::max<duration>(policy_.moves_least, moves);
  }
  /// Others wait in a collective that it will never enter.
  bool is_missed(const rank_facts& f) const {
    return f.ended() && std::any_of(graph_.outside.begin(), graph_.outside.end(),
                                    [&](std::uint32_t r) { return &ranks_[r] == &f; });
  }
  /// So long it must have stood before it is ended.
  duration act_least(const rank_facts& f) const {
    if (policy_.fixed_limit)
      return {};
    if (f.ended())
      return policy_.act_ended_least;
    if (f.works())
      return policy_.act_works_least;
    if (f.may_work())
      return policy_.act_least;
    return f.in_step() || f.motion != rank_motion::locked ? duration::zero()
                                                          : duration(policy_.act_locked_least);
  }
  duration survived_in(const rank_facts& f) const {
    const auto longest = survived_[static_cast<std::size_t>(f.phase_now)];
    return std::min<duration>(policy_.survived_most, std::chrono::duration_cast<duration>(
                                                         longest * policy_.survived_factor));
  }
  /// Only of a rank that was looked at.
  bool is_ready(std::uint32_t r) const {
    const auto& f = ranks_[r];
    return f.state != 0 && (f.over_limit() || f.is_stopped()) && f.idle >= hold(f);
  }
  template<class Which>
  list those(const list& among, Which which) const {
    list some;
    std::copy_if(among.begin(), among.end(), std::back_inserter(some),
                 [&](std::uint32_t r) { return which(ranks_[r]); });
    return some;
  }
  list live_ranks() const {
    list all;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
      if (!ranks_[r].is_gone())
        all.push_back(r);
    return all;
  }
  std::size_t live() const { return live_ranks().size(); }
  verdict of(HangKind kind, list culprits) const {
    verdict v;
    v.kind = kind;
    v.culprits = std::move(culprits);
    v.stood = duration::max();
    for (const auto r : v.culprits) {
      v.stood = std::min(v.stood, ranks_[r].idle);
      if (ranks_[r].is_stopped())
        continue;
      v.moves |= !ranks_[r].stays() && !is_missed(ranks_[r]);
      v.act_least = std::max(v.act_least, act_least(ranks_[r]));
    }
    if (!v.culprits.empty())
      // One that is stopped says most; else the one that has stood longest was there first.
      v.first = *std::max_element(v.culprits.begin(), v.culprits.end(), [&](auto a, auto b) {
        const bool one = ranks_[a].is_stopped(), other = ranks_[b].is_stopped();
        return one != other ? other : ranks_[a].idle < ranks_[b].idle;
      });
    if (graph_.waits)
      v.waits = *graph_.waits;
    if (v.culprits.empty())
      v.stood = v.waits.shortest;
    return v;
  }

  /// Whatever these ranks do meanwhile, they have entered what the others have not.
  verdict other_collective(const list& culprits) const {
    auto v = of(HangKind::OTHER_COLLECTIVE, culprits);
    v.moves = false;
    v.act_least = {};
    v.other = graph_.other;
    return v;
  }

  std::optional<verdict> in_circle() const {
    for (const auto r : graph_.in_circle)
      if (!ranks_[r].over_limit() || !ranks_[r].stays())
        return std::nullopt;
    return other_collective(graph_.in_circle);
  }

  /// Messages between two ranks have no number by which to tell which of both is late. Where one
  /// waits for a message, and connections of ranks that stand are unanswered, it is the link: both
  /// ends of it wait, and neither is to blame.
  std::optional<verdict> between_two() const {
    wait_graph::wait w;
    w.shortest = duration::max();
    bool unanswered = false;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      const auto& f = ranks_[r];
      if (f.is_stopped())
        return std::nullopt;
      unanswered |= f.over_limit() && !f.slow_peers.empty();
      for (const auto& row : f.rows)
        if (is_between_two(row.kind) && row.waits() && f.over_limit()) {
          if (w.ranks.empty() || w.ranks.back() != r)
            w.ranks.push_back(r);
          if (row.in_it < w.shortest) {
            w.shortest = row.in_it;
            w.communicator = row.communicator;
            w.number = row.waits_in();
            w.kind = row.kind;
          }
        }
    }
    if (w.ranks.empty() || !unanswered)
      return std::nullopt;
    auto v = link();
    v.waits = v.other = w;
    v.stood = w.shortest;
    if (v.slow_peers.size() < 2)
      v.culprits.clear();
    return v;
  }

  /// Ranks that go on wait now and then, too.
  bool waiting_stand() const {
    return graph_.waits && std::all_of(graph_.waits->ranks.begin(), graph_.waits->ranks.end(),
                                       [this](std::uint32_t r) { return ranks_[r].over_limit(); });
  }

  /// Of the ranks that are waited for: those that are stopped or stand. One that moves is given
  /// time.
  std::optional<verdict> not_entered() const {
    if (patient_ && !those(graph_.outside, not_looked_at).empty())
      return std::nullopt;
    list ready;
    std::copy_if(graph_.outside.begin(), graph_.outside.end(), std::back_inserter(ready),
                 [this](std::uint32_t r) { return is_ready(r); });
    // Of a rank that reports nothing it is not known what it has entered.
    if (auto sure =
            those(ready, [](const rank_facts& f) { return f.feeds != 0 || f.is_stopped(); });
        !sure.empty())
      ready = std::move(sure);
    if (ready.empty()) {
      if (auto v = left_behind())
        return v;
      auto alone = those(graph_.outside, [](const rank_facts& f) {
        return !f.is_gone() && f.steps >= f.steps_when_entered + steps_alone;
      });
      if (alone.empty() || !waiting_stand() || !stands_out(alone.size(), live() + 1))
        return std::nullopt;
      auto v = of(HangKind::NOT_ENTERED, alone);
      v.stood = v.waits.shortest;
      v.moves = false;
      v.act_least = {};
      v.goes_on = true;
      return v;
    }
    // Nearly all of them at once: a long computation of all looks like this.
    const auto stopped = those(ready, [](const rank_facts& f) { return f.is_stopped(); });
    const bool most = 2 * ready.size() > live();
    auto v = of(graph_.waits ? HangKind::NOT_ENTERED : HangKind::ALONE,
                most && !stopped.empty() ? stopped : ready);
    const bool over = std::all_of(ready.begin(), ready.end(),
                                  [this](std::uint32_t r) { return is_missed(ranks_[r]); });
    if (most && stopped.empty() && !over && v.stood < alike_hold(ready))
      return std::nullopt;
    return v;
  }

  /// By ranks whose processes have ended, and that for long: what they have entered last may never
  /// have been reported.
  std::optional<verdict> left_behind() const {
    const auto hold = policy_.fixed_limit.value_or(policy_.alike_least);
    auto gone = those(graph_.outside,
                      [hold](const rank_facts& f) { return f.is_gone() && f.idle >= hold; });
    if (gone.size() != graph_.outside.size() || !waiting_stand() || graph_.waits->shortest < hold)
      return std::nullopt;
    auto v = of(HangKind::NOT_ENTERED, std::move(gone));
    v.stood = v.waits.shortest;
    v.moves = true; // nothing is left to be ended
    return v;
  }

  std::optional<verdict> entered_by_all() const {
    const auto& inside = graph_.inside;
    if (patient_ && !those(inside, not_looked_at).empty())
      return std::nullopt;
    if (auto odd = odd_ones(inside); !odd.empty()) {
      auto v = of(HangKind::ALONE, std::move(odd));
      v.inside = true;
      return v;
    }
    // Bytes that nothing had a processor to send or to receive are not the network's.
    for (const auto r : inside)
      if (!ranks_[r].over_limit() || ranks_[r].motion == rank_motion::moves ||
          (ranks_[r].is_late() && ranks_[r].idle < policy_.moves_least))
        return std::nullopt;
    if (any_member_goes_on())
      return std::nullopt;
    return link();
  }

  /// One that has left the collective just now: the others are about to.
  bool any_member_goes_on() const {
    return graph_.waits && std::any_of(ranks_.begin(), ranks_.end(), [this](const auto& f) {
             return !f.over_limit() && !f.is_gone() &&
                    std::any_of(f.rows.begin(), f.rows.end(), [this](auto& row) {
                      return row.communicator == graph_.waits->communicator;
                    });
           });
  }

  /// The rank whose connections retransmit to most peers; the peer that most ranks name.
  verdict link() const {
    std::size_t most = 0, with_most = 0;
    std::uint32_t rank = 0;
    std::map<std::string, std::size_t> named;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      const auto n = ranks_[r].slow_peers.size();
      for (const auto& peer : ranks_[r].slow_peers)
        ++named[peer];
      if (n > most) {
        most = n;
        with_most = 0;
        rank = r;
      }
      with_most += n == most && n != 0 ? 1 : 0;
    }
    auto v = of(HangKind::LINK, with_most == 1 ? list{rank} : list{});
    v.moves = false;
    v.other = graph_.other;
    std::size_t top = 0;
    for (const auto& [peer, n] : named)
      top = std::max(top, n);
    for (const auto& [peer, n] : named)
      if (n == top && v.slow_peers.size() < 4)
        v.slow_peers.push_back(peer);
    return v;
  }

  /// Stopped, held by the kernel, or in a loop, where the others are not.
  list odd_ones(const list& among) const {
    auto odd = those(among, [](const rank_facts& f) { return f.is_stopped() && f.over_limit(); });
    if (!odd.empty())
      return odd;
    odd = those(among, [this](const rank_facts& f) {
      return f.is_held_by_kernel() && f.over_limit() && f.idle >= hold(f);
    });
    if (stands_out(odd.size(), among.size()))
      return odd;
    odd = those(among, [this](const rank_facts& f) {
      return (f.spins() || f.works()) && f.over_limit() && f.idle >= hold(f);
    });
    if (stands_out(odd.size(), among.size()))
      return odd;
    return {};
  }

  duration alike_hold(const list& some) const {
    if (policy_.fixed_limit)
      return {};
    const bool input = std::all_of(some.begin(), some.end(), [this](std::uint32_t r) {
      return ranks_[r].phase_now == diag::phase::input;
    });
    return input ? policy_.alike_in_input_least : policy_.alike_least;
  }

  /// No collective says anything.
  std::optional<verdict> alone() const {
    const auto all = live_ranks();
    if (auto odd = odd_ones(all); !odd.empty())
      return of(HangKind::ALONE, std::move(odd));
    list ready;
    for (const auto r : all)
      if (is_ready(r) && ranks_[r].feeds != 0)
        ready.push_back(r);
    if (ready.empty())
      return std::nullopt;
    const auto at_work = those(all, [](const rank_facts& f) { return !f.over_limit(); });
    auto v = of(HangKind::ALONE, ready);
    v.all_alike = ready.size() == all.size();
    if (2 * ready.size() > all.size() || at_work.empty())
      if (v.stood < alike_hold(ready))
        return std::nullopt;
    return v;
  }

  const diagnosis_policy& policy_;
  const std::vector<rank_facts>& ranks_;
  bool patient_;
  const survived_phases& survived_;
  wait_graph graph_;
};

} // namespace

std::optional<verdict> judge(const diagnosis_policy& policy, const std::vector<rank_facts>& ranks,
                             const communicator_names& names, bool patient,
                             const survived_phases& survived) {
  if (ranks.empty() ||
      std::any_of(ranks.begin(), ranks.end(), [](const auto& f) { return !f.known; }))
    return std::nullopt;
  return judge_of(policy, ranks, names, patient, survived)();
}

} // namespace troupe::actors
