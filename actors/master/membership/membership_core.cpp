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
      command_(options_.command) {
  const bool first_master = author_.following().value <= 1;
  if (!first_master && options_.nodes_max != 1)
    all_known_at_ += options_.return_to_sleeper_within;
}

membership_core::effects membership_core::hello(instant now, session_id session,
                                                const msg<Hello>& m) {
  effects out;
  auto hello = m.read();
  const node_name node = hello->getNode().cStr();
  const incarnation which{hello->getIncarnation()};

  if (const auto followed = m.envelope().follows; followed > author_.following()) {
    // The node does not obey the refusal, which is an older master's. It only learns from it which
    // master that is.
    refuse_session(
        out, session, node,
        {fmt::format("it has followed a newer master (epoch {}) than this one (epoch {})",
                     followed.value, author_.following().value),
         true});
    return out;
  }
  if (joins_succession(out, now, session, m))
    return out;
  if (const auto why = objection(now, *hello)) {
    refuse_session(out, session, node, *why);
    return out;
  }
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
    if (known->second.session)
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

void membership_core::let_in(effects& out, instant now, session_id session, const msg<Hello>& m) {
  auto hello = m.read();
  const node_name node = hello->getNode().cStr();
  const bool first = !anybody_present();
  if (const auto still = members_.find(node); still != members_.end())
    due_.erase({still->second.lost_at, node});
  members_[node] =
      member{incarnation{hello->getIncarnation()}, session, command_of(hello->getCommand())};
  if (first)
    put_off_unheard(now);
  learn_from(out, now, *hello);
  // In this order: what the node says once it is welcome must not overtake its own arrival.
  announce_present(out, *hello);
  welcome_to(out, session);
}

void membership_core::refuse_session(effects& out, session_id session, const node_name& node,
                                     const refusal& why) {
  out.push_back(refuse{session, refusal_message(why)});
  out.push_back(note{{log::level::warning,
                      "node_refused",
                      fmt::format("node {} was refused: {}", node, why.reason),
                      {{"node", node}}}});
}

msg<Refused> membership_core::refusal_message(const refusal& why) {
  return author_.write<Refused>({}, [&](auto b) {
    b.setReason(why.reason);
    b.setJob(options_.job);
    b.setRetry(why.retry);
    b.setRetryAfterMs(static_cast<std::uint32_t>(std::ceil(milliseconds_of(why.after))));
  });
}

void membership_core::welcome_to(effects& out, session_id session) {
  out.push_back(welcome{session, author_.write<Welcome>({}, [&](auto b) {
                          b.setJob(options_.job);
                          b.setBeatEveryMs(
                              static_cast<std::uint32_t>(milliseconds_of(options_.beat_every)));
                        })});
}

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
                                                 })
                             .any()});
}

membership_core::effects membership_core::closed(instant now, session_id session,
                                                 const ports::link_ending& how) {
  effects out;
  const bool silent = how.how == ports::link_end::silent;
  if (ends_succession(out, now, session, silent ? std::optional(how.reason) : std::nullopt))
    return out;
  for (auto& [node, known] : members_) {
    if (known.session != session)
      continue;
    if (silent) {
      lose(out, now, node_name{node}, how.reason, true);
      break;
    }
    const auto within = may_take(how.how);
    known.session.reset();
    known.since = now;
    known.because = how.reason;
    known.unheard = how.how == ports::link_end::deaf;
    set_due(node_name{node}, known, now + within);
    if (!anybody_present())
      put_off_unheard(now);
    out.push_back(announce{author_
                               .write<NodeAway>({},
                                                [&name = node, &how](auto b) {
                                                  b.setNode(name);
                                                  b.setReason(how.reason);
                                                })
                               .any()});
    if (!job_over_)
      out.push_back(note{{log::level::warning,
                          "node_away",
                          fmt::format("the link to node {} is gone ({}); it has {} to come back",
                                      node, how.reason, troupe::in_words(within)),
                          {{"node", node}}}});
    break;
  }
  return out;
}

bool membership_core::anybody_present() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& m) { return m.second.session.has_value(); });
}

duration membership_core::may_take(ports::link_end how) const {
  switch (how) {
  case ports::link_end::neglected:
    return options_.return_to_sleeper_within;
  case ports::link_end::deaf:
    return options_.return_to_deaf_within;
  default:
    return options_.return_within;
  }
}

void membership_core::set_due(const node_name& node, member& who, instant lost_at) {
  due_.erase({who.lost_at, node});
  who.lost_at = lost_at;
  due_.emplace(lost_at, node);
}

void membership_core::put_off_unheard(instant now) {
  const bool alone = !anybody_present();
  for (auto& [node, known] : members_)
    if (!known.session && known.unheard)
      set_due(node_name{node}, known,
              alone ? known.since + options_.deaf_at_most
                    : std::min(known.lost_at, now + options_.return_to_deaf_within));
}

membership_core::effects membership_core::departed(instant now, session_id session,
                                                   const std::string& reason) {
  effects out;
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

membership_core::effects membership_core::expel(instant now, const node_name& node,
                                                const std::string& reason, bool may_rejoin) {
  effects out;
  const auto known = members_.find(node);
  if (known == members_.end())
    return out;
  if (known->second.session)
    refuse_session(out, *known->second.session, node, refusal{reason, may_rejoin});
  lose(out, now, node, reason, may_rejoin);
  return out;
}

membership_core::effects membership_core::tick(instant now) {
  effects out;
  std::vector<node_name> gone;
  for (auto at = due_.begin(); at != due_.end() && at->first <= now; ++at)
    gone.push_back(at->second);
  for (const auto& node : gone) {
    const auto& known = members_.at(node);
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
void membership_core::lose(effects& out, instant now, const node_name& node,
                           const std::string& reason, bool may_rejoin) {
  if (may_rejoin)
    flapping_.lost(now, node);
  forget(out, node, reason, may_rejoin);
  tell_if_everyone_left(out, now);
}

void membership_core::forget(effects& out, const node_name& node, const std::string& reason,
                             bool may_rejoin, bool may_run) {
  const auto known = members_.find(node);
  invariant(known != members_.end(), "only a member can be lost");
  fenced_.push_back(fenced_node{node, known->second.which, reason, may_rejoin});
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

std::optional<session_id> membership_core::session_of(const node_name& node) const {
  const auto known = members_.find(node);
  return known == members_.end() ? std::nullopt : known->second.session;
}

std::vector<std::pair<node_name, session_id>> membership_core::present() const {
  std::vector<std::pair<node_name, session_id>> all;
  for (const auto& [node, known] : members_)
    if (known.session)
      all.emplace_back(node, *known.session);
  return all;
}

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
