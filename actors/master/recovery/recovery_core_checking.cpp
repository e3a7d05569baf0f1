// How recovery_core has nodes checked before they take part (--network-check).
//
// A node that is broken costs a running job all that was done since the last checkpoint, and all
// others the restart. So a world is proposed of checked nodes only; what is left of them after a
// check may be too few, and then the job waits as it does for any node that is missing.

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// The whole finding is in the log before its node leaves.
const char* in_short(CheckFinding what) {
  switch (what) {
  case CheckFinding::FAULTY_LINK:
    return "the check found one of its links faulty";
  case CheckFinding::SLOW_NODE:
    return "the check found it slow";
  default:
    return "the check found it faulty";
  }
}

} // namespace

/// All that are here are checked together, also those that were found good before: a newcomer needs
/// partners, and a machine that was good may be so no more.
bool recovery_core::checks_first(effects& out, instant now, const std::vector<candidate>& present) {
  if (!options_.checks_nodes)
    return false;
  if (check_again_at_ && now < *check_again_at_)
    return true;
  check_again_at_.reset();
  const bool all_good = std::all_of(present.begin(), present.end(), [this](const candidate& c) {
    return roster_.standing(c.node) == node_standing::good;
  });
  if (all_good)
    return false;
  ask_for_check(out, present, false);
  return true;
}

void recovery_core::check_newcomers(effects& out) {
  if (!options_.checks_nodes || checking_ || phase_ == phase::gathering)
    return;
  std::vector<candidate> nodes;
  for (auto& c : roster_.claimants())
    if (!is_member(c.node) && roster_.standing(c.node) == node_standing::unchecked)
      nodes.push_back(std::move(c));
  if (!nodes.empty())
    ask_for_check(out, nodes, true);
}

void recovery_core::ask_for_check(effects& out, const std::vector<candidate>& nodes, bool alone) {
  checking_.emplace();
  checking_->number = ++checks_;
  checking_->alone = alone;
  for (const auto& c : nodes)
    checking_->nodes.emplace(c.node, c.which);
  out.push_back(check_nodes{checks_, author_.write<CheckWanted>({}, [&](CheckWanted::Builder b) {
                              b.setAlone(alone);
                              auto all = b.initNodes(static_cast<unsigned>(nodes.size()));
                              for (unsigned i = 0; i < nodes.size(); ++i) {
                                all[i].setNode(nodes[i].node);
                                all[i].setAddress(nodes[i].address);
                                all[i].setBulkPort(nodes[i].bulk_port);
                                all[i].setTrained(roster_.last_group_ranks().count(nodes[i].node) !=
                                                  0);
                              }
                            })});
}

recovery_core::effects recovery_core::nodes_checked(instant now, std::uint64_t number,
                                                    const msg<NodesChecked>& m) {
  effects out;
  if (!checking_ || checking_->number != number || phase_ == phase::concluded)
    return out;
  const auto asked = *std::exchange(checking_, std::nullopt);
  checks_failed_ = 0;
  auto said = m.read();
  const auto judge = [&](const node_name& node, node_standing s) {
    if (const auto life = asked.nodes.find(node); life != asked.nodes.end())
      roster_.set_standing(node, life->second, s);
  };
  // Suspect at once: its NodeLost, by which it is forgotten, comes after the next proposal.
  std::string only_one; ///< why the only node that there can be leaves
  for (const auto f : said->getLeave())
    for (const auto n : f.getNodes()) {
      if (sizes_.nodes_max == 1 && options_.beside == n.cStr())
        only_one = f.getReason().cStr();
      judge(n.cStr(), node_standing::suspect);
      if (!asked.alone && found_faulty_.size() < limits::check_faulty_kept)
        found_faulty_.insert(n.cStr());
      out.push_back(evict{n.cStr(), f.getReason().cStr(), false, in_short(f.getKind())});
    }
  for (const auto n : said->getGood()) {
    judge(n.cStr(), asked.alone ? node_standing::alone : node_standing::good);
    if (!asked.alone)
      found_faulty_.erase(n.cStr());
  }
  std::vector<node_name> undecided;
  for (const auto n : said->getUndecided()) {
    undecided.emplace_back(n.cStr());
    judge(undecided.back(), node_standing::suspect);
  }
  if (asked.alone) {
    if (said->getGood().size() > 0)
      growth_.newcomer(now);
    check_newcomers(out);
  } else if (!undecided.empty()) {
    spare_one_suspect(out, undecided, asked);
  }
  if (phase_ == phase::gathering && !only_one.empty() && roster_.size() == 1 &&
      !options_.cluster_replaces)
    // A machine that is broken would else be held for as long as nodes are waited for.
    conclude(out, now, ending::failed, only_one + ", and it is the only one");
  else if (phase_ == phase::gathering)
    consider_proposing(out, now);
  check();
  return out;
}

/// Nodes that fail with each other, and work by themselves: where one node is a job, one of them
/// can do it, and their link is not needed.
void recovery_core::spare_one_suspect(effects& out, const std::vector<node_name>& undecided,
                                      const check_under_way& asked) {
  if (roster_.here() > 0 || sizes_.nodes_min > 1) {
    out.push_back(note{{log::level::warning,
                        "check_waits",
                        fmt::format("{} wait{} until another node is here, with which it shows "
                                    "which of them is broken; start one, or do without the check",
                                    few_of(undecided), undecided.size() == 1 ? "s" : ""),
                        {{"nodes", static_cast<std::int64_t>(undecided.size())}}}});
    return;
  }
  const auto& one = undecided.front();
  roster_.set_standing(one, asked.nodes.at(one), node_standing::good);
  out.push_back(note{{log::level::warning,
                      "check_spares_one",
                      fmt::format("node {} takes part without the others, which wait until "
                                  "another node is here: it works by itself",
                                  one),
                      {{"node", one}}}});
}

/// A bug in the checking must not keep a job from starting.
recovery_core::effects recovery_core::check_failed(instant now, std::uint64_t number,
                                                   const std::string& why) {
  effects out;
  if (!checking_ || checking_->number != number || phase_ == phase::concluded)
    return out;
  const auto asked = *std::exchange(checking_, std::nullopt);
  const bool again = ++checks_failed_ < limits::check_tries_max;
  out.push_back(note{
      {log::level::warning,
       "check_not_made",
       fmt::format("the check of {} could not be made: {}; {}", counted(asked.nodes.size(), "node"),
                   why, again ? "it is tried again" : "the nodes take part unchecked"),
       {{"reason", why}}}});
  if (again) {
    check_again_at_ = now + 1s;
    return out;
  }
  checks_failed_ = 0;
  for (const auto& [node, which] : asked.nodes)
    roster_.set_standing(node, which, node_standing::good);
  if (phase_ == phase::gathering)
    consider_proposing(out, now);
  check();
  return out;
}

void recovery_core::check_again(effects& out, instant now) {
  if (!check_again_at_ || now < *check_again_at_)
    return;
  check_again_at_.reset();
  check_newcomers(out);
}

std::vector<candidate> recovery_core::worth_a_stop(std::vector<candidate> present) const {
  if (options_.checks_nodes)
    present.erase(std::remove_if(present.begin(), present.end(),
                                 [this](const candidate& c) {
                                   return !is_member(c.node) &&
                                          (found_faulty_.count(c.node) != 0 ||
                                           roster_.standing(c.node) == node_standing::unchecked);
                                 }),
                  present.end());
  return present;
}

} // namespace troupe::actors
