#include "actors/master/rendezvous/rendezvous_core.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

rendezvous_core::rendezvous_core(rendezvous_options options, messages::author author, instant now)
    : options_(std::move(options)), author_(std::move(author)), phase_since_(now),
      growth_(options_.growth) {
  waiting_.begin(now);
}

// ---- events ----

rendezvous_core::effects rendezvous_core::node_present(instant now, const msg<NodePresent>& m) {
  effects out;
  auto present = m.read();
  const node_name node = present->getNode().cStr();
  if (phase_ == phase::concluded) {
    out.push_back(direct{{node}, conclusion_});
    return out;
  }
  const auto known = nodes_.find(node);
  const bool anew = known == nodes_.end();
  candidate who{node, present->getAddress().cStr(), present->getSlots(), std::nullopt,
                anew ? ++arrivals_ : known->second.who.arrival};
  if (present->getWantedRank() >= 0)
    who.wanted_rank = static_cast<std::uint32_t>(present->getWantedRank());
  if (const auto why = rank_objection(who); !why.empty()) {
    out.push_back(expel{node, why, false});
    return out;
  }
  if (!anew && known->second.away)
    --away_count_;
  if (anew)
    last_arrival_ = now;
  if (who.wanted_rank)
    wanted_ranks_[*who.wanted_rank] = node;
  nodes_[node] = present_node{who, false};
  newest_heard_ = std::max(newest_heard_, generation{present->getState().getGeneration()});
  if (phase_ == phase::gathering) {
    out.push_back(note{joined_in_words(node)});
    // Recovery may have started anew since it was told.
    if (gave_up_)
      give_up(out, "too few nodes were there in time");
    consider_proposing(out, now);
    if (phase_ == phase::gathering)
      stop_what_has_ended(out, node, present->getState());
  } else if (is_member(node)) {
    repeat_directive(out, now, m);
  } else {
    stop_what_has_ended(out, node, present->getState());
    out.push_back(note{{log::level::story,
                        "node_waits",
                        fmt::format("node {} is here, beside generation {}", node, current_.value),
                        {{"node", node}}}});
    standing_by_.erase(node);
    if (world_.size() == options_.nodes_max)
      tell_spares(out, {who}); // whoever else comes: it cannot become larger
    else
      growth_.newcomer(now);
  }
  return out;
}

rendezvous_core::effects rendezvous_core::node_away(instant, const msg<NodeAway>& m) {
  effects out;
  const node_name node = m.read()->getNode().cStr();
  const auto known = nodes_.find(node);
  if (known == nodes_.end() || known->second.away)
    return out;
  known->second.away = true;
  ++away_count_;
  if (phase_ == phase::running && is_member(node))
    out.push_back(inform_recovery{m.any()});
  return out;
}

rendezvous_core::effects rendezvous_core::node_lost(instant now, const msg<NodeLost>& m) {
  effects out;
  auto lost = m.read();
  const node_name node = lost->getNode().cStr();
  const auto known = nodes_.find(node);
  if (known == nodes_.end())
    return out;
  forget(node);
  if (phase_ == phase::running && is_member(node))
    lost_members_.insert(node);
  if (phase_ == phase::concluded)
    return out; // it has heard the verdict and left
  out.push_back(note{{log::level::story,
                      "node_lost",
                      fmt::format("node {} is lost: {}", node, lost->getReason().cStr()),
                      {{"node", node}, {"reason", std::string(lost->getReason().cStr())}}}});
  if (phase_ == phase::gathering) {
    consider_proposing(out, now);
  } else if (phase_ == phase::preparing && is_member(node)) {
    stop_members(out, fmt::format("node {} was lost while generation {} was prepared", node,
                                  current_.value));
    become_gathering(out, now);
  } else if (phase_ == phase::running && is_member(node)) {
    out.push_back(inform_recovery{m.any()});
  }
  return out;
}

rendezvous_core::effects rendezvous_core::prepared(instant now, const msg<Prepared>& m) {
  effects out;
  auto answer = m.read();
  const node_name node = answer->getNode().cStr();
  if (phase_ != phase::preparing || m.envelope().about != current_ || !is_member(node))
    return out;
  take_prepared(out, now, node, answer->getStorePort(), answer->getStoreHosted());
  return out;
}

rendezvous_core::effects rendezvous_core::reform(instant now, const msg<Reform>& m) {
  effects out;
  if (phase_ != phase::running || m.envelope().about != current_)
    return out;
  auto wish = m.read();
  const node_name without = wish->getWithout().cStr();
  if (!without.empty() && largest_world(claimants(without)) == 0) {
    out.push_back(inform_recovery{
        author_.write<Indispensable>(current_, [&](auto b) { b.setNode(without); }).any()});
    return out;
  }
  restart_count_ = wish->getRestartCount();
  stop_members(out, wish->getReason().cStr());
  if (!without.empty()) {
    out.push_back(expel{without, wish->getReason().cStr(), false});
    forget(without);
  }
  become_gathering(out, now);
  return out;
}

rendezvous_core::effects rendezvous_core::conclude(instant now, const msg<Conclude>& m) {
  effects out;
  if (phase_ == phase::concluded)
    return out;
  phase_ = phase::concluded;
  phase_since_ = now;
  waiting_.end();
  conclusion_ = m.any();
  out.push_back(direct{everyone(), conclusion_});
  out.push_back(announce_end{});
  return out;
}

rendezvous_core::effects rendezvous_core::tick(instant now) {
  effects out;
  if (recalled_at_ && now - *recalled_at_ >= options_.recall_within)
    stop_waiting_for_return(out, now);
  if (phase_ == phase::gathering) {
    consider_proposing(out, now);
    if (phase_ == phase::gathering)
      consider_giving_up(out, now);
  } else if (phase_ == phase::preparing && now >= prepare_until_) {
    expel_unprepared(out, now);
  } else if (const auto due = growth_due(); due && now >= *due) {
    consider_growing(out, now);
  }
  if (waiting_.due(now))
    remind(out, now);
  return out;
}

std::optional<instant> rendezvous_core::next_wakeup() const {
  std::optional<instant> first;
  const auto consider = [&first](instant at) { first = first ? std::min(*first, at) : at; };
  if (recalled_at_)
    consider(*recalled_at_ + options_.recall_within);
  if (phase_ == phase::preparing)
    consider(prepare_until_);
  if (phase_ == phase::gathering && enough_since_ && settled_at())
    consider(*settled_at());
  else if (phase_ == phase::gathering && !enough_since_ && !gave_up_)
    consider(phase_since_ + options_.join_timeout);
  if (const auto growing = growth_due())
    consider(*growing);
  if (const auto reminding = waiting_.next())
    consider(*reminding);
  return first;
}

// ---- transitions ----

void rendezvous_core::become_gathering(effects& out, instant now) {
  phase_ = phase::gathering;
  phase_since_ = now;
  waiting_.begin(now);
  enough_since_.reset();
  gave_up_ = false;
  waited_for_ = 0;
  growth_.generation_ends(now);
  world_.clear();
  members_.clear();
  lost_members_.clear();
  prepared_.clear();
  consider_proposing(out, now);
}

void rendezvous_core::become_preparing(effects& out, instant now) {
  phase_ = phase::preparing;
  phase_since_ = now;
  waiting_.begin(now);
  prepare_until_ = now + options_.prepare_within;
  current_ = std::max(current_, newest_heard_).next();
  prepared_.clear();
  store_ = {};
  first_world_ = false;
  out.push_back(record{author_
                           .write<GenerationProposed>(current_,
                                                      [&](auto b) {
                                                        b.setGeneration(current_.value);
                                                        b.setRelaunches(relaunches_);
                                                      })
                           .any()});
  out.push_back(direct{member_names(), prepare_message()});
}

void rendezvous_core::become_running(effects& out, instant now) {
  const auto took = now - phase_since_;
  phase_ = phase::running;
  phase_since_ = now;
  waiting_.end();
  growth_.generation_begins(now);
  last_group_ranks_.clear();
  for (const auto& s : world_)
    last_group_ranks_[s.node] = s.group_rank;
  out.push_back(record{author_
                           .write<GenerationSealed>(current_,
                                                    [&](auto b) {
                                                      write_world(b.initWorld());
                                                      b.setStoreAddress(store_.address);
                                                      b.setStorePort(store_.port);
                                                      b.setStoreHosted(store_.hosted);
                                                    })
                           .any()});
  out.push_back(direct{member_names(), start_message()});
  out.push_back(inform_recovery{author_
                                    .write<Sealed>(current_,
                                                   [&](auto b) {
                                                     write_world(b.initWorld());
                                                     b.setStoreAddress(store_.address);
                                                     b.setStorePort(store_.port);
                                                   })
                                    .any()});
  // Who went away after answering: recovery must not blame others for what its absence does to
  // them.
  for (const auto& s : world_)
    if (const auto n = nodes_.find(s.node); n != nodes_.end() && n->second.away)
      out.push_back(inform_recovery{
          author_.write<NodeAway>(current_, [&](auto b) { b.setNode(s.node); }).any()});
  out.push_back(note{sealed_in_words(took)});
}

// ---- decisions ----

std::string rendezvous_core::rank_objection(const candidate& c) const {
  if (!c.wanted_rank)
    return {};
  if (*c.wanted_rank >= options_.nodes_max)
    return fmt::format("node rank {} does not exist among {} nodes (--node-rank)", *c.wanted_rank,
                       options_.nodes_max);
  const auto taken = wanted_ranks_.find(*c.wanted_rank);
  if (taken != wanted_ranks_.end() && taken->second != c.node)
    return fmt::format("node rank {} is taken by node {} (--node-rank)", *c.wanted_rank,
                       taken->second);
  return {};
}

/// Membership answers with NodeLost; should it know nothing of a node it is asked again.
void rendezvous_core::expel_unprepared(effects& out, instant now) {
  prepare_until_ = now + options_.prepare_within;
  for (const auto& s : world_)
    if (!prepared_.count(s.node))
      out.push_back(expel{
          s.node,
          fmt::format("it did not get ready within {}", troupe::in_words(options_.prepare_within)),
          true});
}

void rendezvous_core::take_prepared(effects& out, instant now, const node_name& node,
                                    std::uint16_t store_port, bool store_hosted) {
  const bool names_store = world_.front().node == node;
  if (names_store && store_port == 0) {
    out.push_back(expel{node, "it has no free port for the store of the training processes", true});
    return;
  }
  if (names_store)
    store_ = store_place{world_.front().address, store_port, store_hosted};
  prepared_.insert(node);
  consider_sealing(out, now);
}

void rendezvous_core::consider_sealing(effects& out, instant now) {
  if (prepared_.size() == world_.size())
    become_running(out, now);
}

void rendezvous_core::repeat_directive(effects& out, instant now, const msg<NodePresent>& m) {
  auto present = m.read();
  const node_name node = present->getNode().cStr();
  const auto state = present->getState();
  const bool ready = generation{state.getGeneration()} == current_ &&
                     state.getPhase() == NodeState::Phase::PREPARED;
  if (phase_ == phase::preparing) {
    if (ready)
      take_prepared(out, now, node, state.getStorePort(), state.getStoreHosted());
    else
      out.push_back(direct{{node}, prepare_message()});
    return;
  }
  if (ready)
    out.push_back(direct{{node}, start_message()});
  out.push_back(inform_recovery{m.any()});
  // Recovery may have started anew and not know who waits.
  if (nodes_.size() > world_.size() && world_.size() < options_.nodes_max)
    growth_.newcomer(now);
  // As a rule recovery has asked for the next generation long before. If not, it has started anew
  // since, which ended all links, and does not know.
  for (const auto& name : lost_members_)
    out.push_back(inform_recovery{author_
                                      .write<NodeLost>(current_,
                                                       [&](auto b) {
                                                         b.setNode(name);
                                                         b.setReason("it was lost");
                                                       })
                                      .any()});
}

void rendezvous_core::stop_members(effects& out, const std::string& reason) {
  if (!world_.empty())
    out.push_back(direct{member_names(), stop_message(current_, reason)});
}

/// Who was away when its generation was stopped has not heard of it, and its workers may wait for
/// their peers for ever.
void rendezvous_core::stop_what_has_ended(effects& out, const node_name& node,
                                          NodeState::Reader state) {
  const generation its{state.getGeneration()};
  if (its > current_ || state.getPhase() != NodeState::Phase::RUNNING)
    return;
  const auto why = fmt::format("generation {} ended while the node was away", its.value);
  out.push_back(direct{{node}, stop_message(its, why)});
}

} // namespace troupe::actors
