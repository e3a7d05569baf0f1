#include "actors/master/membership/membership_core.hpp"

#include "actors/limits.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::actors {

using namespace messages;

membership_core::membership_core(membership_options options, messages::author author, instant began)
    : options_(std::move(options)), author_(std::move(author)), all_known_at_(began),
      command_(options_.command), job_options_(options_.options) {
  if (options_.options.just_taken)
    options_kept_until_ = began + options_.return_to_sleeper_within;
  // The first master of a job knows all that there is. A later one may have nodes that still dial
  // for it, and must be there for them even if all that it knows have left.
  if (options_.has_predecessor && options_.nodes_max != 1)
    all_known_at_ += options_.return_to_sleeper_within;
}

/// The order of the questions matters. A newer master's node is left alone before anything is
/// decided about it. A name that is being passed on has its own rules, also for a node that would
/// be refused. Then what a node may not be or say; and only then whether it is known, since a
/// return and a takeover look the same but for the incarnation.
membership_core::effects membership_core::hello(instant now, session_id session,
                                                const msg<Hello>& m) {
  effects out;
  auto hello = m.read();
  const node_name node = hello->getNode().cStr();
  const incarnation which{hello->getIncarnation()};
  // The master that begins anew hears it: its link ends with this one.
  TROUPE_RARE_IF(job_options_.is_taking(), "membership: a node comes while options are taken");
  if (job_options_.is_taking())
    return out;
  if (const auto followed = m.envelope().follows; followed > author_.following()) {
    // The node does not obey the refusal, which is an older master's. It only learns from it which
    // master that is.
    refuse_session(out, session, node,
                   {fmt::format("it has followed a newer master (term {}) than this one (term {})",
                                followed.value, author_.following().value),
                    true});
    return out;
  }
  if (joins_succession(out, now, session, m))
    return out;
  // Also of a node that was here before: its incarnation may be fenced by now.
  if (const auto why = validation_error(now, *hello)) {
    refuse_session(out, session, node, *why);
    return out;
  }
  if (takes_options(out, now, *hello))
    return out;
  // A node that has followed a master, or still runs a generation, was part of this job; its
  // launcher waits for the verdict.
  const bool took_part = hello->getState().getGeneration() != 0 || m.envelope().follows.value != 0;
  if (job_over_ && !took_part) {
    // The verdict is not about this node: it must not exit as if it had trained.
    refuse_session(
        out, session, node,
        {fmt::format("the job '{}' of this master has ended; a node that comes now waits "
                     "for the next master",
                     options_.job),
         true, limits::rejoin_after_first});
    return out;
  }
  const auto known = members_.find(node);
  if (known != members_.end() && known->second.which == which) {
    TROUPE_RARE_IF(known->second.session, "membership: a node has a newer link");
    if (known->second.session)
      // The node has given up the old link; here its end may not have been noticed yet. If it
      // stayed, its silence would later count against a node that is well.
      out.push_back(fence{*known->second.session, "the node has a newer link"});
    out.push_back(note{{log::level::info,
                        "node_returned",
                        fmt::format("node {} is back", node),
                        {{"node", node}}}});
  } else if (known != members_.end()) {
    take_over(out, now, session, m);
    return out;
  }
  let_in(out, now, session, m);
  return out;
}

/// Also the way back for a node that was away: a return and an arrival differ only in what was
/// known before. The planner hears of both alike and compares the node's state with its own.
void membership_core::let_in(effects& out, instant now, session_id session, const msg<Hello>& m) {
  auto hello = m.read();
  const node_name node = hello->getNode().cStr();
  const bool first = !anybody_present();
  if (const auto still = members_.find(node); still != members_.end())
    due_.erase({still->second.lost_at, node});
  members_[node] =
      member{incarnation{hello->getIncarnation()}, session, command_of(hello->getCommand())};
  // Before the newcomer is announced: if the network is back, the time of all that were not heard
  // runs from this moment and not from when their links ended.
  if (first)
    put_off_unheard(now);
  learn_from(out, now, *hello);
  // In this order: what the node says once it is welcome must not overtake its own arrival.
  announce_present(out, *hello);
  welcome_to(out, session, differing_options(out, *hello));
}

/// `retry` decides the launcher's fate: without it the launcher ends with the reason as its last
/// line, with it the node ends what it runs and joins under a new incarnation.
void membership_core::refuse_session(effects& out, session_id session, const node_name& node,
                                     const refusal& why, const std::string& in_short) {
  out.push_back(refuse{session, refusal_message(why)});
  const bool known = !in_short.empty();
  out.push_back(note{{known ? log::level::info : log::level::warning,
                      "node_refused",
                      fmt::format("node {} was refused: {}", node, known ? in_short : why.reason),
                      {{"node", node}}}});
}

msg<Refused> membership_core::refusal_message(const refusal& why) {
  return author_.write<Refused>({}, [&](auto b) {
    b.setReason(why.reason);
    // A node that has followed a master believes a refusal only from its own job's: any process may
    // answer at that address while its master is away.
    b.setJob(options_.job);
    b.setRetry(why.retry);
    // Rounded up: a node that comes a moment too early is refused once more.
    b.setRetryAfterMs(static_cast<std::uint32_t>(std::ceil(milliseconds_of(why.after))));
  });
}

/// The interval of beats is the master's to say, as it is the master whose beats add up.
void membership_core::welcome_to(effects& out, session_id session,
                                 const std::vector<std::string>& differing) {
  out.push_back(welcome{session, author_.write<Welcome>({}, [&](auto b) {
                          b.setJob(options_.job);
                          b.setBeatEveryMs(
                              static_cast<std::uint32_t>(milliseconds_of(options_.beat_every)));
                          if (differing.empty())
                            return;
                          auto lines = b.initOptions(static_cast<unsigned>(differing.size()));
                          for (unsigned i = 0; i < lines.size(); ++i)
                            lines.set(i, differing[i]);
                        })});
}

/// The whole state each time, and no difference to what was said before: neither end knows which
/// messages of the last link had arrived.
void membership_core::announce_present(effects& out, Hello::Reader& hello) {
  out.push_back(announce{author_
                             .write<NodePresent>({},
                                                 [&](auto b) {
                                                   b.setNode(hello.getNode());
                                                   b.setIncarnation(hello.getIncarnation());
                                                   b.setAddress(hello.getAddress());
                                                   b.setSlots(hello.getSlots());
                                                   b.setWantedRank(hello.getWantedRank());
                                                   b.setWorkerRole(hello.getWorkerRole());
                                                   b.setState(hello.getState());
                                                   b.setStopWithinMs(hello.getStopWithinMs());
                                                   b.setBulkPort(hello.getBulkPort());
                                                   b.setSwitches(hello.getSwitches());
                                                   b.setMachine(hello.getMachine());
                                                   b.setRankIsFound(hello.getRankIsFound());
                                                   b.setMaxRestarts(hello.getMaxRestarts());
                                                 })
                             .any()});
}

/// How a link ends says what has most likely happened to the node. Silence: it is frozen or cut
/// off, and the lease was its time to come back. Closed: a process ended or a firewall let go, and
/// a process that lives dials again within half a second. Both wrong the other way: to wait after
/// silence would add to the lease, not to wait after a close would make each reset of a connection
/// a lost node.
membership_core::effects membership_core::closed(instant now, session_id session,
                                                 const ports::link_ending& how) {
  effects out;
  const bool silent = how.how == ports::link_end::silent;
  // A link of a name that is being passed on belongs to no member.
  if (ends_succession(out, now, session, silent ? std::optional(how.reason) : std::nullopt))
    return out;
  for (auto& [node, known] : members_) {
    if (known.session != session)
      continue;
    if (silent) {
      TROUPE_RARE("membership: a node is lost by silence");
      // The end of the loop, since this removes the node from the map that is walked.
      lose(out, now, node_name{node}, how.reason, true);
      break;
    }
    const auto within = may_take(how.how);
    TROUPE_RARE_IF(how.how == ports::link_end::paused_here, "membership: this master was asleep");
    TROUPE_RARE_IF(how.how == ports::link_end::isolated, "membership: this master hears no node");
    known.session.reset();
    known.since = now;
    known.because = how.reason;
    known.unheard = how.how == ports::link_end::isolated;
    set_due(node_name{node}, known, now + within);
    // The last node that was heard is gone as well, so this master may be cut off: the wait of
    // those that fell silent before is prolonged from now on.
    if (!anybody_present())
      put_off_unheard(now);
    out.push_back(announce{author_
                               .write<NodeAway>({},
                                                [&name = node, &how](auto b) {
                                                  b.setNode(name);
                                                  b.setReason(how.reason);
                                                })
                               .any()});
    // After the verdict links end because nodes leave.
    if (!job_over_)
      out.push_back(note{{log::level::warning,
                          "node_away",
                          fmt::format("node {} has lost its link ({}); if it is not back within "
                                      "{}, the job goes on without it",
                                      node, how.reason, troupe::in_words(within)),
                          {{"node", node}}}});
    break;
  }
  return out;
}

/// One node that is heard proves that the network is there, and that the others' silence is theirs.
bool membership_core::anybody_present() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& m) { return m.second.session.has_value(); });
}

/// Each is the longest rest that a node may have between two dials in that case, and then some:
/// after a plain close it has just begun to dial; one that found this master asleep, or that dials
/// into a dead network, may be far into its back-off.
duration membership_core::may_take(ports::link_end how) const {
  switch (how) {
  case ports::link_end::paused_here:
    return options_.return_to_sleeper_within;
  case ports::link_end::isolated:
    return options_.return_to_isolated_within;
  default:
    return options_.return_within;
  }
}

/// The times are kept in their order as well, so that the next wakeup of thousands of absences is
/// found without looking at all of them.
void membership_core::set_due(const node_name& node, member& who, instant lost_at) {
  due_.erase({who.lost_at, node});
  who.lost_at = lost_at;
  due_.emplace(lost_at, node);
}

/// Eviction helps only if other nodes can go on without the node. While none is heard there are no
/// others: to evict all of them would end training that runs well behind a cut of the master's own
/// network. Bounded all the same, since nodes do not dial for ever. A node whose connection was
/// closed is not among them: of that one something was heard.
void membership_core::put_off_unheard(instant now) {
  const bool alone = !anybody_present();
  for (auto& [node, known] : members_)
    if (!known.session && known.unheard)
      set_due(node_name{node}, known,
              alone ? known.since + options_.isolated_at_most
                    : std::min(known.lost_at, now + options_.return_to_isolated_within));
}

/// A farewell is the one loss that is certain and wanted: no wait, and nothing that counts as
/// flapping, so a launcher may be stopped and started again as often as its user likes.
membership_core::effects membership_core::departed(instant now, session_id session,
                                                   const std::string& reason) {
  effects out;
  // The Goodbye of a node that was replaced: its loss was announced when its name was taken.
  if (ends_succession(out, now, session, std::nullopt)) {
    out.push_back(fence{session, reason});
    return out;
  }
  for (const auto& [node, known] : members_) {
    if (known.session != session)
      continue;
    out.push_back(fence{session, reason});
    forget(out, node_name{node}, reason, true);
    break;
  }
  tell_if_everyone_left(out, now);
  return out;
}

/// The planner's or a member's decision, with a reason that the node's user reads. The node that is
/// not known has gone by itself meanwhile, and its loss was announced then.
membership_core::effects membership_core::evict(instant now, const node_name& node,
                                                const std::string& reason, bool may_rejoin,
                                                const std::string& in_short) {
  effects out;
  const auto known = members_.find(node);
  if (known == members_.end())
    return out;
  // Told now if there is a link; else its fenced incarnation makes the next hello hear it.
  if (known->second.session)
    refuse_session(out, *known->second.session, node, refusal{reason, may_rejoin}, in_short);
  lose(out, now, node, in_short.empty() ? reason : in_short, may_rejoin);
  // That is for the log; a node that comes back hears all of it.
  fenced_.back().reason = reason;
  return out;
}

membership_core::effects membership_core::tick(instant now) {
  effects out;
  // Collected first: each loss takes its node out of due_.
  std::vector<node_name> gone;
  for (auto at = due_.begin(); at != due_.end() && at->first <= now; ++at)
    gone.push_back(at->second);
  for (const auto& node : gone) {
    const auto& known = members_.at(node);
    TROUPE_RARE_IF(known.unheard, "membership: a node that was not heard is not back in time");
    // The reason says how long it was waited for: that time differs with how the link ended.
    lose(out, now, node,
         fmt::format("{}, and it was not back within {}", known.because,
                     troupe::in_words(known.lost_at - known.since)),
         true);
  }
  succeed_the_late(out, now);
  tell_if_everyone_left(out, now);
  remind_of_farewell(out, now);
  return out;
}

/// The same for a node that did not want to go.
/// Only what may come back can flap. A node that is given up for good is not counted: if its name
/// comes again, that is another machine or another day.
void membership_core::lose(effects& out, instant now, const node_name& node,
                           const std::string& reason, bool may_rejoin) {
  if (may_rejoin)
    flapping_.lost(now, node);
  forget(out, node, reason, may_rejoin);
  tell_if_everyone_left(out, now);
}

/// The one way out of the membership, for losses and farewells alike: what has to happen with each
/// of them cannot be left out in one.
void membership_core::forget(effects& out, const node_name& node, const std::string& reason,
                             bool may_rejoin, bool may_run) {
  const auto known = members_.find(node);
  invariant(known != members_.end(), "only a member can be lost");
  // From here on this incarnation is nothing any more. Else a node that was cut off could come back
  // with workers that still run beside the next generation's.
  fenced_.push_back(fenced_node{node, known->second.which, reason, may_rejoin});
  // The oldest has most likely ended or joined anew long ago.
  if (fenced_.size() > limits::nodes_max)
    fenced_.pop_front();
  due_.erase({known->second.lost_at, node});
  members_.erase(known);
  out.push_back(announce{lost_message(node, reason).any(), may_run});
}

msg<NodeLost> membership_core::lost_message(const node_name& node, const std::string& reason) {
  return author_.write<NodeLost>({}, [&](auto b) {
    b.setNode(node);
    b.setReason(reason);
  });
}

/// Nothing is kept for a node that is away: each conversation repeats what counts on the next link.
std::optional<session_id> membership_core::session_of(const node_name& node) const {
  const auto known = members_.find(node);
  return known == members_.end() ? std::nullopt : known->second.session;
}

/// The reason was told when the node was lost. Here it may be another life of it that is present.
std::optional<msg<NodeLost>> membership_core::gone_already(const node_name& node,
                                                           incarnation which) {
  const auto known = members_.find(node);
  if (known != members_.end() && (which == incarnation{} || known->second.which == which))
    return std::nullopt;
  TROUPE_RARE("membership: a node is lost before the member that stands for it begins");
  return lost_message(node, "it was gone before its generation was formed");
}

std::vector<std::pair<node_name, session_id>> membership_core::present() const {
  std::vector<std::pair<node_name, session_id>> all;
  for (const auto& [node, known] : members_)
    if (known.session)
      all.emplace_back(node, *known.session);
  return all;
}

/// Shown with the reason: of a node that is missing a user asks first since when and why.
std::vector<std::pair<node_name, std::string>> membership_core::away() const {
  std::vector<std::pair<node_name, std::string>> all;
  for (const auto& [node, known] : members_)
    if (!known.session)
      all.emplace_back(node, known.because);
  return all;
}

std::string membership_core::in_words() const {
  const auto away = std::count_if(members_.begin(), members_.end(),
                                  [](const auto& m) { return !m.second.session; });
  return fmt::format("{} present, {} away", members_.size() - static_cast<std::size_t>(away), away);
}

} // namespace troupe::actors
