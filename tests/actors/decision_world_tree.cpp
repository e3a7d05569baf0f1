// The generation that is up in decision_world: a naive supervisor of one fate, and its children.

#include "runtime/base/invariant.hpp"
#include "tests/actors/decision_world.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace troupe::actors::testing {

using namespace messages;

void decision_world::start_tree(const recovery_core::start_generation& e) {
  const auto which = e.world.envelope().about;
  invariant(!tree_, "a generation begins before the one before it has ended");
  invariant(!concluded_, "a generation begins after the verdict");
  invariant(which.value == proposed_, "a generation begins before it is on record");
  invariant(!e.start || sealed_.count(which.value) != 0, "recalled before it is sealed");
  auto body = e.world.read();
  check_world(body->getWorld());
  if (e.against)
    ++tree_restarts_[*e.against];
  check_restarts();
  tree_.emplace(tree{which, std::nullopt, {}, std::nullopt, std::nullopt});
  if (!e.start)
    tree_->rendezvous.emplace(actor<rendezvous_core>{
        ++lives_, rendezvous_core(e.world, author("master/rendezvous"), now_)});
  for (const auto m : body->getWorld().getMembers()) {
    const node_name name = m.getNode().cStr();
    member_core core(
        member_options{name, incarnation{m.getIncarnation()}, 20s, 10s, m.getGroupRank()},
        {e.world, e.owners, e.start}, author("master/" + name), now_);
    const auto since = std::pair{core.current_phase(), now_};
    auto& me = tree_->members.emplace(name, member_actor{{++lives_, std::move(core)}, since})
                   .first->second;
    mail first;
    first.begin = true;
    me.mailbox.push_back(first);
    // The naive membership: what the node has said is caught up with.
    auto& n = nodes_[name];
    if (e.start && n.linked())
      me.mailbox.push_back({n.hello().any()});
    for (const auto& said : std::exchange(for_member_[name], {}))
      me.mailbox.push_back({said});
  }
}

/// The first bad end, or early failure, is the end of all.
void decision_world::fails(const std::string& why) {
  if (tree_->order)
    return;
  tree_->why = why;
  pass_on({sup::stop_order::cause::sibling, why, 0, std::nullopt});
}

void decision_world::pass_on(const sup::stop_order& order) {
  tree_->order = order;
  tree_->rendezvous.reset(); // it ends at once when asked
  for (auto& [name, m] : tree_->members) {
    mail to_end;
    to_end.order = order;
    m.mailbox.push_back(to_end);
  }
}

void decision_world::ends(const node_name& member, const std::optional<std::string>& why) {
  tree_->members.erase(member);
  if (why)
    fails(*why);
  settle_tree();
}

void decision_world::rendezvous_ends(const std::optional<std::string>& why) {
  tree_->rendezvous.reset();
  if (why)
    fails(*why);
  settle_tree();
}

void decision_world::settle_tree() {
  if (tree_->rendezvous || !tree_->members.empty())
    return;
  mail end;
  end.ended = tree_->which;
  end.why = tree_->why;
  tree_.reset();
  planner_->mailbox.push_back(end);
}

/// The job lies below the planner: its members end at once, and their nodes hear nothing.
void decision_world::end_tree_with_planner() {
  if (!tree_)
    return;
  for (auto& [name, m] : tree_->members) {
    const bool has_begun = m.mailbox.empty() || !m.mailbox.front().begin;
    // The planner may fall between a member's decision to end and its end.
    if (has_begun && m.core.current_phase() != member_core::phase::ended) {
      const auto last = m.core.ordered(now_, {});
      invariant(last.size() == 1 && std::holds_alternative<member_core::end>(last.front()),
                "a member does not end with the master");
    }
  }
  tree_.reset();
  tree_restarts_.clear();
}

bool decision_world::lives(life which) const {
  if (planner_ && planner_->id == which)
    return true;
  if (!tree_)
    return false;
  if (tree_->rendezvous && tree_->rendezvous->id == which)
    return true;
  for (const auto& [name, m] : tree_->members)
    if (m.id == which)
      return true;
  return false;
}

void decision_world::lower_one_falls() {
  if (!tree_)
    return;
  ++falls_;
  if (tree_->rendezvous && choose_(3) == 0)
    return rendezvous_ends("rendezvous fell");
  if (tree_->members.empty())
    return;
  auto victim = tree_->members.begin();
  std::advance(victim, static_cast<long>(choose_(tree_->members.size())));
  ends(node_name(victim->first), fmt::format("member {} fell", victim->first));
}

/// The job's own account of restarts is the journal's.
void decision_world::check_restarts() const {
  for (const auto& [node, counted] : counted_against_) {
    const auto known = tree_restarts_.find(node);
    invariant(known != tree_restarts_.end() && known->second == counted,
              "the job and the journal disagree about the restarts of a node");
  }
}

std::string decision_world::in_words() const {
  std::string all = planner_ ? planner_->core.in_words() : "no planner";
  if (tree_ && tree_->rendezvous)
    all += "; " + tree_->rendezvous->core.in_words();
  if (tree_)
    for (const auto& [name, m] : tree_->members)
      all += "; " + m.core.in_words();
  return all;
}

// ---- mail ----

void decision_world::take_rendezvous_mail() {
  if (!tree_ || !tree_->rendezvous || tree_->rendezvous->mailbox.empty())
    return;
  auto& r = *tree_->rendezvous;
  const auto m = *r.mailbox.front().message;
  r.mailbox.pop_front();
  perform(r.id, {}, r.core.prepared(now_, m.as<Prepared>()));
}

void decision_world::take_member_mail(const node_name& name) {
  if (!tree_)
    return;
  const auto found = tree_->members.find(name);
  if (found == tree_->members.end() || found->second.mailbox.empty())
    return;
  auto& me = found->second;
  const auto m = me.mailbox.front();
  me.mailbox.pop_front();
  perform(me.id, name, hand_to_member(me.core, m));
}

member_core::effects decision_world::hand_to_member(member_core& core, const mail& m) {
  if (m.begin)
    return core.begin();
  if (m.order)
    return core.ordered(now_, *m.order);
  if (m.message->is<NodePresent>())
    return core.present(now_, m.message->as<NodePresent>());
  if (m.message->is<NodeLost>())
    return core.lost(m.message->as<NodeLost>());
  if (m.message->is<Prepared>())
    return core.prepared(m.message->as<Prepared>());
  if (m.message->is<Start>())
    return core.start(m.message->as<Start>());
  if (m.message->is<Running>())
    return core.running(m.message->as<Running>());
  if (m.message->is<Failed>())
    return core.failed(m.message->as<Failed>());
  if (m.message->is<Finished>())
    return core.finished(m.message->as<Finished>());
  if (m.message->is<EndAnswer>())
    return core.end_answer(m.message->as<EndAnswer>());
  return core.stopped(m.message->as<Stopped>());
}

// ---- effects ----

void decision_world::obey(const node_name&, const rendezvous_core::record& e) {
  journal_.push_back(e.message);
  auto body = e.message.as<GenerationSealed>().read();
  const auto g = body->getWorld().getGeneration();
  invariant(sealed_.insert(g).second, "a number is sealed twice");
  invariant(g == proposed_, "sealed is what was proposed last");
  check_world(body->getWorld());
  for (auto m : body->getWorld().getMembers())
    invariant(nodes_[m.getNode().cStr()].was_ready_for(g), "sealed before all are ready");
}

void decision_world::obey(const node_name&, const rendezvous_core::start& e) {
  for (auto& [name, m] : tree_->members)
    m.mailbox.push_back({e.message.any()});
}

void decision_world::obey(const node_name&, const rendezvous_core::sealed& e) {
  planner_->mailbox.push_back({e.message.any()});
}

void decision_world::obey(const node_name& me, const member_core::direct& e) {
  const auto g = e.message.envelope().about.value;
  if (e.message.is<Prepare>())
    invariant(g == proposed_, "prepared before it is on record");
  else if (e.message.is<Start>() || e.message.is<RankOwners>())
    invariant(sealed_.count(g) != 0, "started before it is sealed");
  else
    invariant(e.message.is<Stop>(), "a member decides what is not its own");
  nodes_[me].send(e.message);
}

void decision_world::obey(const node_name&, const member_core::tell_rendezvous& e) {
  if (tree_->rendezvous)
    tree_->rendezvous->mailbox.push_back({e.message.any()});
}

void decision_world::obey(const node_name&, const member_core::report& e) {
  planner_->mailbox.push_back({e.message});
}

void decision_world::obey(const node_name&, const member_core::fail_early& e) {
  fails(e.why);
}

void decision_world::obey(const node_name& me, const member_core::evict&) {
  ++evicted_;
  evict(me);
}

} // namespace troupe::actors::testing
