// What check_run_core says of a check.

#include "actors/master/network_check/check_run_core.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;
using network_check::finding;

namespace {

CheckFinding kind_of(finding::kind k) {
  switch (k) {
  case finding::kind::faulty_node:
    return CheckFinding::FAULTY_NODE;
  case finding::kind::faulty_link:
    return CheckFinding::FAULTY_LINK;
  case finding::kind::slow_node:
    return CheckFinding::SLOW_NODE;
  case finding::kind::slow_link:
    return CheckFinding::SLOW_LINK;
  case finding::kind::undecidable:
    break;
  }
  return CheckFinding::UNDECIDABLE;
}

std::string size_in_words(std::uint64_t bytes) {
  if (bytes >= 1u << 20)
    return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1u << 10 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} bytes", bytes);
}

/// What bandwidths were measured among.
struct measured_among {
  std::size_t nodes = 0, ranks = 0; ///< devices, or nodes again
  std::string by, by_in_words;
};

/// Among n ranks each one sends 2(n − 1)/n of what is reduced, and (n − 1)/n of what is gathered:
/// bandwidths that count that are comparable between jobs of any size.
log::event bandwidth_in_words(const char* what, const measured_among& among, std::uint64_t bytes,
                              std::uint64_t us, double times) {
  const auto n = static_cast<double>(among.ranks);
  const auto algorithm = us == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(us) / 1'000;
  const auto bus = algorithm * times * (n - 1) / n;
  return {log::level::notice,
          "communication_measured",
          fmt::format("{:10} {:>8} among {} nodes: {:9.2f} ms, {:7.3f} GB/s, {:7.3f} GB/s on the "
                      "bus ({})",
                      what, size_in_words(bytes), among.nodes, static_cast<double>(us) / 1'000,
                      algorithm, bus, among.by_in_words),
          {{"collective", std::string(what)},
           {"nodes", static_cast<std::int64_t>(among.nodes)},
           {"ranks", static_cast<std::int64_t>(among.ranks)},
           {"means", among.by},
           {"bytes", static_cast<std::int64_t>(bytes)},
           {"microseconds", static_cast<std::int64_t>(us)},
           {"algorithm_gb_per_second", double{algorithm}},
           {"bus_gb_per_second", double{bus}}}};
}

} // namespace

std::string check_run_core::in_words() const {
  if (!now_)
    return "idle";
  const auto which = now_->at == step::groups      ? fmt::format("in groups, round {}", now_->round)
                     : now_->at == step::perf_test ? std::string("all together")
                     : now_->at == step::late      ? std::string("and waits for late ones")
                                                   : std::string("each by itself");
  return fmt::format("checks {} {}; {} of {} have answered", counted(now_->count, "node"), which,
                     now_->asked - now_->open.size(), now_->asked);
}

log::event check_run_core::begun_in_words() const {
  const auto nodes = counted(now_->count, "node");
  return {
      log::level::notice,
      "check_begun",
      now_->alone
          ? fmt::format("checking {} beside the generation that runs: {}", nodes,
                        few_of(now_->results.nodes))
          : fmt::format("checking {} before the start: devices, then the network in groups", nodes),
      {{"nodes", static_cast<std::int64_t>(now_->count)}}};
}

std::string check_run_core::speaker_in_words(const std::string& name_on_links) const {
  const auto n = find(name_on_links);
  return n && is_witness(*n) ? name(*n) : "node " + name_on_links;
}

log::event check_run_core::group_failed_in_words(GroupProbed::Reader r) const {
  return {log::level::info,
          "group_failed",
          fmt::format("round {}: {} says: {}", r.getRound(), speaker_in_words(r.getNode().cStr()),
                      r.getFailed().cStr()),
          {{"round", std::int64_t{r.getRound()}},
           {"node", std::string(r.getNode().cStr())},
           {"peer", std::string(r.getPeer().cStr())},
           {"reason", std::string(r.getFailed().cStr())}}};
}

log::event check_run_core::silent_in_words(const node_name& silent, instant now) const {
  const std::string reason =
      fmt::format("it did not answer within {}", troupe::in_words(now - now_->step_began));
  return {log::level::info,
          "group_failed",
          fmt::format("round {}: of {} nothing was heard: {}", now_->round,
                      speaker_in_words(silent), reason),
          {{"round", std::int64_t{now_->round}},
           {"node", silent},
           {"peer", std::string()},
           {"reason", reason}}};
}

log::event check_run_core::late_in_words(instant now) const {
  std::vector<node_name> late;
  for (const auto& [n, unused] : now_->late)
    late.push_back(name(n));
  const bool one = late.size() == 1;
  return {log::level::notice,
          "node_late",
          fmt::format("{} {} after {}: the others go on, and {} faulty unless it ends within {} "
                      "(--network-check-timeout)",
                      few_of(late),
                      one ? "has not ended its own probe" : "have not ended their own probes",
                      troupe::in_words(now - now_->step_began), one ? "it is" : "each is",
                      troupe::in_words(now_->alone_until - now)),
          {{"names", few_of(late)}, {"nodes", static_cast<std::int64_t>(late.size())}}};
}

log::event check_run_core::in_words(const finding& f) const {
  std::vector<node_name> all;
  for (const auto n : f.nodes)
    all.push_back(name(n));
  const std::string nodes = fmt::format("{}", fmt::join(all, ","));
  switch (f.what) {
  case finding::kind::faulty_node:
    return {log::level::warning, "node_faulty", f.reason, {{"names", nodes}}};
  case finding::kind::faulty_link:
    return {log::level::warning, "link_faulty", f.reason, {{"names", nodes}}};
  case finding::kind::slow_node:
    return {
        log::level::warning,
        "node_slow",
        f.reason,
        {{"names", nodes}, {"seconds", double{f.seconds}}, {"median_seconds", double{f.median}}}};
  case finding::kind::slow_link:
    return {
        log::level::warning,
        "link_slow",
        f.reason,
        {{"names", nodes}, {"seconds", double{f.seconds}}, {"median_seconds", double{f.median}}}};
  case finding::kind::undecidable:
    break;
  }
  return {log::level::warning, "check_undecided", f.reason, {{"names", nodes}}};
}

void check_run_core::tell_findings(effects& out) const {
  for (const auto& f : now_->said->findings)
    out.push_back(note{in_words(f)});
}

void check_run_core::tell_nodes(effects& out) const {
  const auto many = std::min(now_->count, limits::check_nodes_told_max);
  for (index n = 0; n < many; ++n) {
    const auto& alone = now_->results.alone[n];
    const auto& of = now_->nodes[n];
    const bool good = std::binary_search(now_->said->good.begin(), now_->said->good.end(), n);
    out.push_back(note{{log::level::info,
                        "node_checked",
                        fmt::format("node {}: {}; by itself {:.3f} s, in its best group {:.3f} s, "
                                    "latency {} us",
                                    name(n), good ? "good" : "not good", alone ? alone->seconds : 0,
                                    of.best, of.latency_us),
                        {{"node", name(n)},
                         {"good", good},
                         {"own_seconds", double{alone ? alone->seconds : 0}},
                         {"group_seconds", double{of.best}},
                         {"latency_us", static_cast<std::int64_t>(of.latency_us)}}}});
  }
}

/// Of each size the slowest member's time counts.
void check_run_core::tell_bandwidths(effects& out) const {
  if (now_->measured_nodes == 0)
    return;
  const auto& all = now_->measured;
  const auto nodes = now_->measured_nodes;
  const auto& by = now_->measured_by;
  const std::string ring = "ring over TCP";
  const auto among =
      by.ranks == 0
          ? measured_among{nodes, nodes, ring, ring}
          : measured_among{nodes, by.ranks, by.library,
                           fmt::format("{}, {}", by.library, counted(by.ranks, "device"))};
  bool told = false;
  for (unsigned i = 0; i < options_.perf_test_sizes.size(); ++i) {
    std::uint64_t reduce = 0, gather = 0;
    for (const auto& m : all)
      if (auto r = m.read(); i < r->getSizes().size()) {
        reduce = std::max(reduce, r->getSizes()[i].getAllReduceUs());
        gather = std::max(gather, r->getSizes()[i].getAllGatherUs());
      }
    if (reduce == 0 && gather == 0)
      continue;
    const auto bytes = options_.perf_test_sizes[i];
    out.push_back(note{bandwidth_in_words("all-reduce", among, bytes, reduce, 2)});
    out.push_back(note{bandwidth_in_words("all-gather", among, bytes, gather, 1)});
    told = true;
  }
  if (!told)
    out.push_back(note{{log::level::warning,
                        "communication_not_measured",
                        fmt::format("bandwidths among {} nodes could not be measured "
                                    "(--comm-perf-test); with --verbose each node says why",
                                    nodes),
                        {{"nodes", static_cast<std::int64_t>(nodes)}}}});
}

log::event check_run_core::concluded_in_words(instant now) const {
  const auto& v = *now_->said;
  const auto seconds = std::chrono::duration<double>(now - now_->began).count();
  return {log::level::notice,
          "check_over",
          fmt::format("{} ({:.2f} s)", v.summary, seconds),
          {{"nodes", static_cast<std::int64_t>(now_->count)},
           {"good_nodes", static_cast<std::int64_t>(v.good.size())},
           {"leaving", static_cast<std::int64_t>(v.leave.size())},
           {"rounds", static_cast<std::int64_t>(now_->results.rounds.size())},
           {"seconds", double{seconds}}}};
}

msg<NodesChecked> check_run_core::answer_message() {
  const auto& v = *now_->said;
  return author_.write<NodesChecked>({}, [&](NodesChecked::Builder b) {
    const auto write = [this](Finding::Builder to, const finding& f) {
      to.setKind(kind_of(f.what));
      to.setReason(f.reason);
      auto nodes = to.initNodes(static_cast<unsigned>(f.nodes.size()));
      for (unsigned i = 0; i < f.nodes.size(); ++i)
        nodes.set(i, name(f.nodes[i]));
    };
    auto findings = b.initFindings(static_cast<unsigned>(v.findings.size()));
    for (unsigned i = 0; i < v.findings.size(); ++i)
      write(findings[i], v.findings[i]);
    auto leave = b.initLeave(static_cast<unsigned>(v.leave.size()));
    for (unsigned i = 0; i < v.leave.size(); ++i) {
      const auto n = v.leave[i];
      const auto why = std::find_if(v.findings.begin(), v.findings.end(), [n](const finding& f) {
        return f.what != finding::kind::undecidable && f.what != finding::kind::slow_link &&
               std::find(f.nodes.begin(), f.nodes.end(), n) != f.nodes.end();
      });
      leave[i].setKind(why == v.findings.end() ? CheckFinding::FAULTY_NODE : kind_of(why->what));
      leave[i].setReason(why == v.findings.end() ? v.summary : why->reason);
      leave[i].initNodes(1).set(0, name(n));
    }
    auto good = b.initGood(static_cast<unsigned>(v.good.size()));
    for (unsigned i = 0; i < v.good.size(); ++i)
      good.set(i, name(v.good[i]));
    std::vector<index> rest;
    for (const auto& f : v.findings)
      if (f.what == finding::kind::undecidable)
        std::copy_if(f.nodes.begin(), f.nodes.end(), std::back_inserter(rest),
                     [&v](index n) { return std::count(v.leave.begin(), v.leave.end(), n) == 0; });
    auto undecided = b.initUndecided(static_cast<unsigned>(rest.size()));
    for (unsigned i = 0; i < rest.size(); ++i)
      undecided.set(i, name(rest[i]));
  });
}

} // namespace troupe::actors
