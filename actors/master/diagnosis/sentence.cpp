#include "actors/master/diagnosis/sentence.hpp"

#include "actors/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using messages::HangKind;

namespace {

constexpr std::size_t runs_named = 8;
constexpr std::uint32_t all_of_a_core = 800; // in thousandths
constexpr std::uint32_t works_permille = 300;

/// "1.7 s", "3 s", "14 s", "3 min 20 s".
std::string for_people(duration d) {
  const double s = milliseconds_of(d) / 1000.0;
  if (s >= 119.5)
    return troupe::in_words(std::chrono::seconds(static_cast<std::int64_t>(s)));
  if (s >= 9.95)
    return fmt::format("{:.0f} s", s);
  auto text = fmt::format("{:.1f}", s);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0)
    text.resize(text.size() - 2);
  return text + " s";
}

std::string ranks_named(const std::vector<std::uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_runs(ranks);
}

const char* verb_of(const std::vector<std::uint32_t>& ranks, const char* one, const char* more) {
  return ranks.size() == 1 ? one : more;
}

std::string group_of(const wait_graph::wait& w, const communicator_names& names) {
  if (w.communicator >= names.size() || names.at(w.communicator).name.empty())
    return "";
  return " of group " + names.at(w.communicator).name;
}

std::string collective_of(const wait_graph::wait& w, const communicator_names& names) {
  return fmt::format("{} #{}{}", diag::name_of(w.kind), w.number, group_of(w, names));
}

std::string phase_in_words(const rank_facts& f) {
  switch (f.phase_now) {
  case diag::phase::input:
    return "waiting for its data loader";
  case diag::phase::forward:
    return "in its forward pass";
  case diag::phase::backward:
    return "in its backward pass";
  case diag::phase::optimizer:
    return "in its optimizer";
  case diag::phase::checkpoint:
    return "in a checkpoint";
  case diag::phase::evaluation:
    return "in its evaluation";
  case diag::phase::user:
    return f.user_phase.empty() ? "in a phase of its script" : "in its phase " + f.user_phase;
  case diag::phase::other:
    break;
  }
  return "";
}

/// ", in a checkpoint": beside a place that does not say it.
std::string also_doing(const rank_facts& f) {
  const auto what = phase_in_words(f);
  return what.empty() || f.phase_now == diag::phase::input ? "" : ", " + what;
}

/// What the culprit does, after "which" or its name; and what can be done about it.
std::string plight(const verdict& v, const rank_facts& f) {
  const auto how_long = for_people(f.idle);
  if (v.goes_on)
    return fmt::format("has made {} steps meanwhile without it: it has left the order of "
                       "collectives",
                       f.steps - std::min(f.steps, f.steps_when_entered));
  if (f.state == 't')
    return fmt::format("has been stopped by a tracer for {}", how_long);
  if (f.state == 'T')
    return fmt::format("has been stopped (SIGSTOP) for {}: kill -CONT {} lets it go on", how_long,
                       f.pid);
  if (f.state == 'Z' || f.state == 'X')
    return "has ended";
  const auto place = f.place.empty() ? std::string("a system call") : f.place;
  if (f.is_held_by_kernel())
    return fmt::format("the kernel has held in {} for {}{}: look at its disk or network file "
                       "system, and at dmesg",
                       place, how_long, also_doing(f));
  if (f.ended() || (v.moves && f.motion == rank_motion::ends))
    return fmt::format("has come to the end of its script{} and has not ended for {}",
                       f.place.empty() ? "" : ", in " + f.place + ",", how_long);
  if (v.moves && f.motion == rank_motion::starves)
    return fmt::format("has waited for a processor for {}{}: its machine has more to run than it "
                       "has processors",
                       how_long, also_doing(f));
  if (v.moves && !f.stays())
    return fmt::format("moves{} but has reported nothing for {}{}; troupe.step() or a named phase "
                       "in the script would tell more",
                       f.place.empty() ? "" : ", in " + f.place + ",", how_long, also_doing(f));
  if (f.spins())
    return fmt::format("has been in a loop{} for {}{} ({} % of a core{}, always in the same "
                       "functions)",
                       f.place.empty() ? "" : " in " + f.place, how_long, also_doing(f),
                       f.cpu_permille / 10,
                       f.cpu_permille < all_of_a_core ? ", and wants more" : "");
  if (!f.place.empty())
    return fmt::format("has been in {} for {}{}{}", f.place, how_long, also_doing(f),
                       f.works() && f.cpu_permille >= works_permille
                           ? fmt::format(" ({} % of a core)", f.cpu_permille / 10)
                           : "");
  const auto what = phase_in_words(f);
  return what.empty() ? fmt::format("has stood still for {}", how_long)
                      : fmt::format("has been {} for {}", what, how_long);
}

/// "the kernel has held in read() …" needs the rank as its object.
std::string of_rank(std::uint32_t rank, const std::string& what) {
  if (what.rfind("the kernel has held ", 0) == 0)
    return fmt::format("the kernel has held rank {} {}", rank, what.substr(20));
  return fmt::format("rank {} {}", rank, what);
}

std::string waits_for(const verdict& v, const rank_facts& first, const communicator_names& names) {
  auto text = fmt::format("{} {} in {} for {}", ranks_named(v.waits.ranks),
                          verb_of(v.waits.ranks, "waits", "wait"), collective_of(v.waits, names),
                          ranks_named(v.culprits));
  if (v.culprits.size() == 1)
    return text + ", which " + plight(v, first);
  if (first.is_gone())
    return text + ", which have ended";
  return text + ": " + of_rank(v.first, plight(v, first));
}

std::string other_order(const verdict& v, const communicator_names& names) {
  if (v.elsewhere())
    return fmt::format("{} {} in {}, and {} {} in {}: each waits for the other, since the order of "
                       "collectives differs",
                       ranks_named(v.other.ranks), verb_of(v.other.ranks, "waits", "wait"),
                       collective_of(v.other, names), ranks_named(v.waits.ranks),
                       verb_of(v.waits.ranks, "waits", "wait"), collective_of(v.waits, names));
  if (v.other.kind == v.waits.kind)
    return fmt::format("{} {} entered {} with another size than {}: none of them can leave it",
                       ranks_named(v.culprits), verb_of(v.culprits, "has", "have"),
                       collective_of(v.waits, names), ranks_named(v.waits.ranks));
  return fmt::format("{} {} entered {} where {} {} in {}: the order of collectives differs",
                     ranks_named(v.culprits), verb_of(v.culprits, "has", "have"),
                     collective_of(v.other, names), ranks_named(v.waits.ranks),
                     verb_of(v.waits.ranks, "is", "are"), diag::name_of(v.waits.kind));
}

std::string slow_link(const verdict& v, const communicator_names& names) {
  auto text =
      is_between_two(v.waits.kind)
          ? fmt::format("{} {} in {}{} for {}", ranks_named(v.waits.ranks),
                        verb_of(v.waits.ranks, "waits", "wait"), diag::name_of(v.waits.kind),
                        group_of(v.waits, names), for_people(v.stood))
      : v.elsewhere()
          ? fmt::format("{} {} not left {}, which all have entered, for {}",
                        ranks_named(v.other.ranks), verb_of(v.other.ranks, "has", "have"),
                        collective_of(v.other, names), for_people(v.other.shortest))
          : fmt::format("{} have all entered {} and none has left it for {}",
                        ranks_named(v.waits.ranks), collective_of(v.waits, names),
                        for_people(v.stood));
  if (v.slow_peers.empty())
    return text + ": look at the network between their nodes";
  text += fmt::format(": the connection{} to {} {} unanswered", v.slow_peers.size() == 1 ? "" : "s",
                      fmt::format("{}", fmt::join(v.slow_peers, ", ")),
                      v.slow_peers.size() == 1 ? "is" : "are");
  if (!v.culprits.empty())
    text += fmt::format(", most of all those of {}", ranks_named(v.culprits));
  return text;
}

std::string stands_alone(const verdict& v, const rank_facts& first) {
  if (v.all_alike) {
    const auto what = phase_in_words(first);
    return fmt::format(
        "all ranks have {} for {}{}",
        first.phase_now == diag::phase::input ? "been waiting for their data loaders"
        : what.empty()                        ? "stood still"
                                              : "been " + what,
        for_people(v.stood),
        first.place.empty() ? "" : ": rank " + std::to_string(v.first) + " in " + first.place);
  }
  auto text = of_rank(v.first, plight(v, first));
  if (v.culprits.size() > 1)
    text = fmt::format("{} stand still: {}", ranks_named(v.culprits), text);
  if (v.inside && !v.waits.ranks.empty())
    text += fmt::format("; all others wait for it");
  return text;
}

} // namespace

std::string rank_runs(const std::vector<std::uint32_t>& ascending) {
  std::string text;
  std::size_t runs = 0, told = 0;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t j = i;
    while (j + 1 < ascending.size() && ascending[j + 1] == ascending[j] + 1)
      ++j;
    if (runs++ == runs_named)
      return fmt::format("{} and {} more", text, ascending.size() - told);
    // Two that follow each other are no range.
    if (j == i + 1)
      j = i;
    text +=
        (text.empty() ? "" : ", ") +
        (j == i ? std::to_string(ascending[i]) : fmt::format("{}-{}", ascending[i], ascending[j]));
    told += j - i + 1;
    i = j + 1;
  }
  return text;
}

std::string sentence_of(const verdict& v, const std::vector<rank_facts>& ranks,
                        const communicator_names& names) {
  static const rank_facts nothing;
  const auto& first = !v.culprits.empty() && v.first < ranks.size() ? ranks[v.first] : nothing;
  std::string text;
  if (v.kind == HangKind::OTHER_COLLECTIVE)
    text = other_order(v, names);
  else if (v.kind == HangKind::LINK)
    text = slow_link(v, names);
  else if (v.kind == HangKind::NOT_ENTERED && !v.waits.ranks.empty())
    text = waits_for(v, first, names);
  else
    text = stands_alone(v, first);
  return text.substr(0, limits::sentence_max);
}

std::string sentence_of(const slow_rank& slow, const rank_facts& facts) {
  auto text = fmt::format("rank {} is slow: it works for {} in a step where the others need {} "
                          "({:.1f} times as long",
                          slow.rank, troupe::in_words(slow.busy), troupe::in_words(slow.others),
                          slow.score);
  text += slow.by_its_past > 0
              ? fmt::format(", and {:.1f} times as long as before)", slow.by_its_past)
              : ")";
  if (facts.phase_now == diag::phase::input)
    text += "; it is waiting for its data loader now";
  return text.substr(0, limits::sentence_max);
}

std::vector<std::string> evidence_of(const verdict& v, const std::vector<rank_facts>& ranks) {
  std::vector<std::string> lines;
  for (const auto r : v.culprits) {
    if (r >= ranks.size())
      continue;
    for (const auto& line : ranks[r].evidence) {
      if (lines.size() == limits::evidence_lines_max)
        return lines;
      lines.push_back(fmt::format("rank {}: {}", r, line).substr(0, limits::evidence_line_max));
    }
  }
  return lines;
}

} // namespace troupe::actors
