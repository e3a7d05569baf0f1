// What check_run_core asks each node by itself, and what it does with one that is late.
//
// A driver may need seconds to begin where that of the others was awake, and one that hangs looks
// the same for as long. So the others go on without such a node after a while, it takes part in
// their next round when it has answered, and only the user's limit makes it faulty.

#include "actors/master/network_check/check_run_core.hpp"
#include "actors/master/network_check/network_check_core_evidence.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;
using network_check::probe_result;

void check_run_core::ask_alone(effects& out, instant now, const std::vector<index>& nodes,
                               step which) {
  begin_step(now, which, options_.within);
  for (const auto n : nodes) {
    now_->open.emplace(std::pair{std::size_t{0}, n}, true);
    out.push_back(say{name(n), node_question(now_->nodes[n].trained).any()});
  }
  now_->asked = nodes.size();
}

msg<NodeProbeWanted> check_run_core::node_question(bool trained) {
  return author_.write<NodeProbeWanted>({}, [&](NodeProbeWanted::Builder b) {
    b.setCheck(number_);
    b.setWithinMs(static_cast<std::uint64_t>(milliseconds_of(options_.within)));
    b.setTrained(trained);
    if (options_.box_pairs.empty())
      return;
    auto box = b.initBox();
    box.setMinBandwidth(options_.box_bandwidth_min);
    box.setMinChannels(options_.box_channels_min);
    auto pairs = box.initPairs(static_cast<unsigned>(options_.box_pairs.size()));
    for (unsigned i = 0; i < options_.box_pairs.size(); ++i) {
      pairs[i].setFirst(options_.box_pairs[i].first);
      pairs[i].setSecond(options_.box_pairs[i].second);
    }
  });
}

check_run_core::effects check_run_core::node_probed(instant now, const msg<NodeProbed>& m) {
  effects out;
  auto r = m.read();
  const auto n = find(r->getNode().cStr());
  if (!n || r->getCheck() != number_)
    return out;
  const auto late = now_->late.find(*n);
  const bool is_asked =
      (now_->at == step::alone || now_->at == step::alone_again) && now_->open.count({0, *n}) != 0;
  if (!is_asked && late == now_->late.end())
    return out;
  now_->nodes[*n].library = r->getCollectives().cStr();
  now_->nodes[*n].ranks = r->getRanks() <= limits::probed_devices_max ? r->getRanks() : 0;
  const std::string failed = r->getFailed().cStr();
  probe_result found{failed.empty() ? probe_result::kind::passed : probe_result::kind::failed,
                     r->getSeconds(), failed};
  if (!is_asked) {
    late_answered(out, now, *n, std::move(found));
    return out;
  }
  auto& known = now_->results.alone[*n];
  // Of two times the shorter one says what the machine can do.
  if (now_->at == step::alone_again && known && failed.empty())
    found.seconds = std::min(found.seconds, known->seconds);
  known = found;
  answered(out, now, 0, *n);
  return out;
}

/// They are silent for now, and have as long as the limit allows from when they were asked.
void check_run_core::await_late(effects& out, instant now) {
  for (const auto& [which, unused] : now_->open) {
    now_->results.alone[which.second] = probe_result{};
    if (now < now_->alone_until)
      now_->late.emplace(which.second, std::nullopt);
  }
  if (!now_->late.empty())
    out.push_back(note{late_in_words(now)});
}

/// Slow by its first answer, it is asked once more, as those that answered in time are.
void check_run_core::late_answered(effects& out, instant now, index n, probe_result found) {
  auto& first = now_->late.at(n);
  const bool passed = found.what == probe_result::kind::passed;
  if (passed && !first && now < now_->alone_until &&
      network_check::is_slow(found.seconds, usual_seconds(), options_.policy)) {
    first = found.seconds;
    out.push_back(say{name(n), node_question(now_->nodes[n].trained).any()});
    return;
  }
  if (passed && first)
    found.seconds = std::min(found.seconds, *first);
  now_->results.alone[n] = std::move(found);
  no_longer_late(out, now, n);
}

void check_run_core::no_longer_late(effects& out, instant now, index n) {
  now_->late.erase(n);
  now_->policy.rounds_max += options_.policy.rounds_max; // what it needs is no fault of the others
  if (now_->at != step::late)
    return;
  if (now_->late.empty())
    next_round(out, now);
  else // others may answer in the same moment
    now_->until = std::min(now_->until, now + limits::check_late_together);
}

/// Their limit is over. One that was asked a second time has shown that it works.
void check_run_core::settle_late(instant now) {
  if (now < now_->alone_until)
    return;
  for (const auto& [n, first] : now_->late)
    if (first)
      now_->results.alone[n] = probe_result{probe_result::kind::passed, *first, {}};
  now_->late.clear();
}

/// Whether the verdict waits for nodes that may still show that they work.
bool check_run_core::waits_for_late(instant now) {
  if (now_->late.empty())
    return false;
  now_->at = step::late;
  now_->step_began = now;
  now_->until = now_->alone_until;
  now_->open.clear();
  return true;
}

double check_run_core::usual_seconds() const {
  std::vector<double> times;
  for (const auto& r : now_->results.alone)
    if (r && r->what == probe_result::kind::passed)
      times.push_back(r->seconds);
  return network_check::quantile(times, 0.5);
}

/// A process that happened to run beside the probe makes a machine look slow. So those that do are
/// probed twice.
void check_run_core::after_alone(effects& out, instant now) {
  const auto usual = usual_seconds();
  std::vector<index> slow;
  for (index n = 0; n < now_->nodes.size(); ++n)
    if (const auto& r = now_->results.alone[n];
        r && r->what == probe_result::kind::passed && !now_->nodes[n].lost &&
        network_check::is_slow(r->seconds, usual, options_.policy))
      slow.push_back(n);
  if (slow.empty())
    next_round(out, now);
  else
    ask_alone(out, now, slow, step::alone_again);
}

} // namespace troupe::actors
