#include "actors/master/diagnosis/wait_graph.hpp"

#include "actors/limits.hpp"

#include <algorithm>
#include <map>

namespace troupe::actors {

namespace {

/// What is known of one communicator from all its members.
struct group_counts {
  std::uint32_t seen = 0;
  std::uint64_t least = UINT64_MAX; ///< that a member has entered
  std::uint64_t most = 0;
  std::uint32_t last_member = 0; ///< the one that has entered least
  std::uint64_t waited_in = 0;   ///< the highest that a member waits in; 0: none waits
  bool uncounted = false;        ///< sends and receives: its numbers cannot be compared
  bool members_missing = false;  ///< some were never seen, so their numbers are unknown

  bool comparable() const { return !uncounted && !members_missing; }
};

/// What a page says of a collective is settled when it was entered so long ago: a reader may meet
/// the moment in which one is entered half way.
constexpr auto settled_after = 300ms;

class wait_graph_builder {
 public:
  wait_graph_builder(const std::vector<rank_facts>& ranks, const communicator_names& names)
      : ranks_(ranks), names_(names), groups_(names.size()) {}

  wait_graph build();

 private:
  /// Where a page does not say when collectives end: the last one, if others have not come so far
  /// and nothing has changed since.
  std::uint64_t waits_in(const rank_facts& f, const communicator_row& row) const {
    if (row.ends_known)
      return row.waits() ? row.waits_in() : 0;
    const auto& g = groups_[row.communicator];
    return f.over_limit() && row.entered == g.most && g.least < g.most ? row.entered : 0;
  }
  bool waits(const rank_facts& f) const {
    return std::any_of(f.rows.begin(), f.rows.end(),
                       [&](const auto& row) { return waits_in(f, row) != 0; });
  }
  bool blocked_in(const rank_facts& f, const communicator_row& row) const {
    const auto& g = groups_[row.communicator];
    const auto n = waits_in(f, row);
    return n != 0 && (!g.comparable() || g.least < n);
  }
  bool blocked(const rank_facts& f) const {
    return std::any_of(f.rows.begin(), f.rows.end(),
                       [&](const auto& row) { return blocked_in(f, row); });
  }
  bool waited_for(const rank_facts& f) const {
    return std::any_of(f.rows.begin(), f.rows.end(), [&](const auto& row) {
      const auto& g = groups_[row.communicator];
      return !g.uncounted && row.entered < g.waited_in;
    });
  }
  void count();
  void find_culprits(wait_graph& out);
  bool is_settled_in_one(const rank_facts& f, const communicator_row& row) const;
  void find_order(wait_graph& out) const;
  void find_circle(wait_graph& out) const;
  wait_graph::wait wait_in(std::uint32_t communicator, std::uint64_t number) const;
  void name_wait(wait_graph& out) const;
  void name_inside(wait_graph& out) const;

  const std::vector<rank_facts>& ranks_;
  const communicator_names& names_;
  std::vector<group_counts> groups_;
};

void wait_graph_builder::count() {
  std::vector<std::uint32_t> with_row(names_.size());
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (const auto& row : ranks_[r].rows) {
      auto& g = groups_[row.communicator];
      ++g.seen;
      if (row.entered < g.least)
        g.last_member = r;
      g.least = std::min(g.least, row.entered);
      g.most = std::max(g.most, row.entered);
      g.uncounted |= is_between_two(row.kind);
    }
  for (std::uint32_t c = 0; c < groups_.size(); ++c)
    groups_[c].members_missing = groups_[c].seen < names_.at(c).members;
  for (const auto& f : ranks_)
    for (const auto& row : f.rows) {
      auto& g = groups_[row.communicator];
      g.waited_in = std::max(g.waited_in, waits_in(f, row));
    }
}

/// A rank without a row of the group of all ranks has not entered anything in it, and will not if
/// its process has ended.
void wait_graph_builder::find_culprits(wait_graph& out) {
  bool any_waits = false, any_blocked = false, unknown_members = false;
  std::vector<std::uint32_t> in_all_entered;
  std::optional<std::uint32_t> of_all;
  for (std::uint32_t c = 0; c < groups_.size(); ++c) {
    if (groups_[c].waited_in == 0)
      continue;
    if (groups_[c].members_missing) {
      out.unseen = std::max(out.unseen, names_.at(c).members - groups_[c].seen);
      if (names_.at(c).members == ranks_.size())
        of_all = c;
    }
    unknown_members |= !groups_[c].comparable();
  }
  const auto lacks_row = [&](const rank_facts& f) {
    return of_all && std::none_of(f.rows.begin(), f.rows.end(),
                                  [&](const auto& row) { return row.communicator == *of_all; });
  };
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const auto& f = ranks_[r];
    const bool w = waits(f), b = blocked(f);
    any_waits |= w;
    any_blocked |= b;
    const bool wanted = waited_for(f) || lacks_row(f);
    // One that is stopped waits for a signal first, wherever it is.
    if (wanted && (!w || f.is_stopped()))
      out.outside.push_back(r);
    else if (wanted && !b)
      out.inside.push_back(r);
    if (w && !b)
      in_all_entered.push_back(r);
  }
  // Numbers do not tell which rank is waited for: it is one that waits in nothing, and no process
  // that had nothing to do with it and is gone.
  if (out.outside.empty() && out.inside.empty() && any_waits && unknown_members)
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
      if (!waits(ranks_[r]) && !ranks_[r].is_gone())
        out.outside.push_back(r);
  if (out.outside.empty() && out.inside.empty() && !any_blocked)
    out.inside = std::move(in_all_entered);
}

wait_graph::wait wait_graph_builder::wait_in(std::uint32_t communicator,
                                             std::uint64_t number) const {
  wait_graph::wait w;
  w.communicator = communicator;
  w.number = number;
  w.shortest = duration::max();
  std::map<diag::collective, std::size_t> kinds;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (const auto& row : ranks_[r].rows)
      if (row.communicator == communicator && waits_in(ranks_[r], row) == number) {
        w.ranks.push_back(r);
        w.shortest = std::min(w.shortest, row.in_it);
        ++kinds[row.kind];
      }
  if (w.ranks.empty())
    w.shortest = {};
  std::size_t most = 0;
  for (const auto& [kind, n] : kinds)
    if (n > most) {
      most = n;
      w.kind = kind;
    }
  return w;
}

/// Stuck in exactly one collective, of which kind and number are known.
bool wait_graph_builder::is_settled_in_one(const rank_facts& f, const communicator_row& row) const {
  // Communicators beyond the bound share a number.
  const bool is_one = row.communicator + 1 < limits::communicators_known_max;
  const bool is_inside = row.ends_known ? row.entered == row.left + 1 : f.over_limit();
  const bool is_known = row.kind != diag::collective::other && row.kind != diag::collective::none;
  return is_one && is_inside && is_known && row.entered != 0 &&
         !groups_[row.communicator].uncounted && row.in_it >= settled_after;
}

/// Two are at the same number of a communicator, and not in the same collective. Its bytes count as
/// well, where all say them: all_reduce of different sizes never ends.
void wait_graph_builder::find_order(wait_graph& out) const {
  struct side {
    diag::collective kind = diag::collective::none;
    std::vector<std::uint32_t> ranks;
  };
  struct place {
    std::map<diag::collective, std::vector<std::uint32_t>> kinds;
    std::map<std::uint64_t, std::vector<std::uint32_t>> sizes;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, place> entered;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r)
    for (const auto& row : ranks_[r].rows)
      if (is_settled_in_one(ranks_[r], row)) {
        auto& at = entered[{row.communicator, row.entered}];
        at.kinds[row.kind].push_back(r);
        at.sizes[row.bytes].push_back(r);
      }
  for (const auto& entry : entered) {
    const auto& which = entry.first; // no binding: a lambda captures it
    const auto& at = entry.second;
    std::vector<side> sides;
    if (at.kinds.size() >= 2)
      for (const auto& [kind, ranks] : at.kinds)
        sides.push_back({kind, ranks});
    else if (at.sizes.size() >= 2 && at.sizes.count(0) == 0 &&
             at.kinds.count(diag::collective::all_reduce) != 0)
      for (const auto& [size, ranks] : at.sizes)
        sides.push_back({diag::collective::all_reduce, ranks});
    if (sides.size() < 2)
      continue;
    // The larger side is taken to be right.
    std::stable_sort(sides.begin(), sides.end(),
                     [](const side& a, const side& b) { return a.ranks.size() > b.ranks.size(); });
    for (auto s = sides.begin() + 1; s != sides.end(); ++s)
      out.out_of_order.insert(out.out_of_order.end(), s->ranks.begin(), s->ranks.end());
    std::sort(out.out_of_order.begin(), out.out_of_order.end());
    const auto in = [&](const side& of) {
      auto w = wait_in(which.first, which.second);
      w.communicator = which.first;
      w.number = which.second;
      w.kind = of.kind;
      w.ranks = of.ranks;
      return w;
    };
    out.waits = in(sides.front());
    out.other = in(sides.back());
    return;
  }
}

/// Each waits for the last member of the group that it waits in: from any of them the way ends in
/// the circle.
void wait_graph_builder::find_circle(wait_graph& out) const {
  const auto next = [this](std::uint32_t r) -> const communicator_row* {
    for (const auto& row : ranks_[r].rows)
      if (blocked_in(ranks_[r], row) && groups_[row.communicator].comparable())
        return &row;
    return nullptr;
  };
  std::uint32_t at = 0;
  while (at < ranks_.size() && !next(at))
    ++at;
  if (at == ranks_.size())
    return;
  std::vector<bool> seen(ranks_.size());
  while (!seen[at]) {
    seen[at] = true;
    const auto* row = next(at);
    if (!row)
      return;
    at = groups_[row->communicator].last_member;
  }
  // The waits on the circle; the side with the fewest ranks is the odd one.
  std::vector<wait_graph::wait> sides;
  const auto begin = at;
  do {
    const auto* row = next(at);
    if (!row)
      return;
    sides.push_back(wait_in(row->communicator, waits_in(ranks_[at], *row)));
    at = groups_[row->communicator].last_member;
  } while (at != begin);
  std::stable_sort(sides.begin(), sides.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() < b.ranks.size(); });
  if (sides.size() < 2)
    return;
  out.other = sides.front();
  out.waits = sides.back();
  out.in_circle = sides.front().ranks;
  // As many on both sides: nothing says which is wrong.
  if (sides.front().ranks.size() == sides.back().ranks.size()) {
    out.in_circle.insert(out.in_circle.end(), sides.back().ranks.begin(), sides.back().ranks.end());
    std::sort(out.in_circle.begin(), out.in_circle.end());
    out.in_circle.erase(std::unique(out.in_circle.begin(), out.in_circle.end()),
                        out.in_circle.end());
  }
}

/// The collective in which most wait: among those of the culprits if there are any.
void wait_graph_builder::name_wait(wait_graph& out) const {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> waiting;
  for (const auto& f : ranks_)
    for (const auto& row : f.rows)
      if (const auto n = waits_in(f, row))
        ++waiting[{row.communicator, n}];
  const auto& culprits = out.outside.empty() ? out.inside : out.outside;
  const auto of_culprit = [&](std::uint32_t c, std::uint64_t number) {
    for (const auto r : culprits) {
      bool has_row = false;
      for (const auto& row : ranks_[r].rows) {
        has_row |= row.communicator == c;
        if (row.communicator == c && row.entered < number)
          return true;
      }
      if (!has_row && names_.at(c).members == ranks_.size())
        return true;
    }
    return false;
  };
  std::size_t most = 0;
  bool most_is_culprits = false;
  std::pair<std::uint32_t, std::uint64_t> which;
  for (const auto& [where, n] : waiting) {
    const bool theirs = of_culprit(where.first, where.second);
    if (theirs < most_is_culprits || (theirs == most_is_culprits && n <= most))
      continue;
    most = n;
    most_is_culprits = theirs;
    which = where;
  }
  if (most != 0)
    out.waits = wait_in(which.first, which.second);
}

/// Where most of `inside` wait.
void wait_graph_builder::name_inside(wait_graph& out) const {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> waiting;
  for (const auto r : out.inside)
    for (const auto& row : ranks_[r].rows)
      if (const auto n = waits_in(ranks_[r], row))
        ++waiting[{row.communicator, n}];
  const auto most = std::max_element(waiting.begin(), waiting.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most != waiting.end())
    out.other = wait_in(most->first.first, most->first.second);
}

wait_graph wait_graph_builder::build() {
  wait_graph out;
  count();
  find_order(out);
  if (!out.out_of_order.empty())
    return out;
  find_culprits(out);
  if (out.outside.empty() && out.inside.empty())
    find_circle(out);
  if (!out.waits)
    name_wait(out);
  if (!out.inside.empty())
    name_inside(out);
  return out;
}

} // namespace

bool is_between_two(diag::collective kind) {
  return kind == diag::collective::send || kind == diag::collective::recv;
}

wait_graph graph_of(const std::vector<rank_facts>& ranks, const communicator_names& names) {
  return wait_graph_builder(ranks, names).build();
}

} // namespace troupe::actors
