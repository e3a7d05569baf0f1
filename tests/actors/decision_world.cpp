#include "tests/actors/decision_world.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors::testing {

using namespace messages;

namespace {

/// With so many at most, nodes take part in pairs.
constexpr std::uint32_t in_pairs = 4;
/// In peace: how long anything may wait that has a deadline, or that the master has to notice.
constexpr auto patience = 120s;

rendezvous_options options(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  rendezvous_options o;
  o.nodes_min = nodes_min;
  o.nodes_max = nodes_max;
  o.last_call = 5s;
  o.join_timeout = 100s;
  o.stop_within = 10s;
  o.prepare_slack = 10s;
  o.recall_within = 10s;
  if (nodes_max == in_pairs)
    o.unit = 2;
  return o;
}

recovery_options budget(std::uint32_t max_restarts, bool replaces,
                        std::optional<std::uint32_t> of_job) {
  recovery_options o;
  o.max_restarts = max_restarts;
  o.cluster_replaces = replaces;
  o.job_restarts = of_job;
  return o;
}

const node_name names[] = {"a", "b", "c", "d"};

} // namespace

decision_world::decision_world(fate choose)
    : choose_(std::move(choose)), trouble_(4 + choose_(3) * 30),
      falls_every_(50 + choose_(4) * 500), failing_(choose_(5)),
      nodes_min_(1 + static_cast<std::uint32_t>(choose_(3))),
      nodes_max_(nodes_min_ + static_cast<std::uint32_t>(choose_(3))),
      max_restarts_(static_cast<std::uint32_t>(choose_(4))), replaces_(choose_(4) == 0) {
  if (choose_(4) != 0)
    of_job_ = static_cast<std::uint32_t>(choose_(3));
  sizes_.emplace_back(nodes_min_, nodes_max_);
  for (const auto& name : names)
    nodes_[name].be(name);
  start_planner();
}

void decision_world::start_planner() {
  if (planner_)
    return;
  planner_.emplace(actor<recovery_core>{
      ++lives_, recovery_core(options(nodes_min_, nodes_max_),
                              budget(max_restarts_, replaces_, of_job_), author("master"), now_)});
  perform(planner_->id, {}, planner_->core.recall(now_, journal_));
}

/// The job lies below the planner, and sessions rely on both.
void decision_world::planner_falls() {
  ++falls_;
  end_tree_with_planner();
  planner_.reset();
  for (const auto& name : names) {
    break_link(name);
    if (!calm_ && choose_(8) == 0)
      nodes_[name].be_replaced();
  }
}

void decision_world::strike() {
  now_ += std::chrono::milliseconds(choose_(50));
  start_planner();
  const auto& name = names[choose_(std::size(names))];
  switch (choose_(20)) {
  case 0:
  case 1:
  case 2:
    return take_planner_mail();
  case 3:
    return take_rendezvous_mail();
  case 4:
  case 5:
  case 6:
    return take_member_mail(name);
  case 7:
  case 8:
  case 9:
    return nodes_[name].take_directive();
  case 10:
  case 11:
    return take_report(name);
  case 12:
  case 13:
    return come(name);
  case 14:
    if (choose_(trouble_) == 0)
      return break_link(name);
    return;
  case 15:
    if (choose_(trouble_) == 0)
      return lose(name);
    return;
  case 16:
    if (choose_(falls_every_) == 0)
      return choose_(2) == 0 ? planner_falls() : lower_one_falls();
    if (planner_ && choose_(300) == 0)
      return scale();
    if (planner_ && choose_(20'000) == 0)
      return perform(planner_->id, {}, planner_->core.abandon(now_, "it was cancelled"));
    return;
  case 17:
    // Messages arrive much faster than deadlines, or nothing would ever be decided in time.
    now_ += choose_(8) == 0 ? std::chrono::seconds(choose_(12)) : 0s;
    return tick();
  default:
    return stir(name);
  }
}

void decision_world::scale() {
  const auto low = static_cast<std::uint32_t>(1 + choose_(2));
  const auto high = low + static_cast<std::uint32_t>(choose_(3));
  const auto wish = author("shell").write<ScaleRequest>({}, [&](auto b) {
    b.setNodesMin(low);
    b.setNodesMax(high);
  });
  perform(planner_->id, {}, planner_->core.scale_wanted(now_, 1, wish));
}

// ---- the naive membership ----

/// The planner hears of it first.
void decision_world::come(const node_name& name) {
  auto& n = nodes_[name];
  if (n.linked())
    return;
  n.link();
  for_member_[name].clear();
  mail said{n.hello().any()};
  if (planner_)
    planner_->mailbox.push_back(said);
  if (tree_ && tree_->members.count(name) != 0)
    tree_->members.at(name).mailbox.push_back(said);
}

void decision_world::break_link(const node_name& name) {
  auto& n = nodes_[name];
  if (!n.linked())
    return;
  n.break_link();
  if (planner_)
    planner_->mailbox.push_back({away(name).any()});
}

/// A node is given up that is away, or says goodbye.
void decision_world::lose(const node_name& name) {
  auto& n = nodes_[name];
  if (!n.known())
    return;
  n.be_lost();
  mail said{lost(name).any()};
  if (planner_)
    planner_->mailbox.push_back(said);
  if (tree_ && tree_->members.count(name) != 0)
    tree_->members.at(name).mailbox.push_back(said);
}

void decision_world::evict(const node_name& name) {
  lose(name);
}

void decision_world::stir(const node_name& name) {
  auto& n = nodes_[name];
  const bool linked = n.linked();
  n.stir(choose_, calm_, failing_);
  if (linked && !n.linked() && planner_)
    planner_->mailbox.push_back({away(name).any()});
}

// ---- mail ----

void decision_world::take_report(const node_name& name) {
  const auto m = nodes_[name].said();
  if (!m)
    return;
  if (tree_ && tree_->members.count(name) != 0)
    tree_->members.at(name).mailbox.push_back({*m});
  else
    for_member_[name].push_back(*m);
}

void decision_world::take_planner_mail() {
  if (!planner_ || planner_->mailbox.empty())
    return;
  const auto m = planner_->mailbox.front();
  planner_->mailbox.pop_front();
  perform(planner_->id, {},
          m.ended ? planner_->core.generation_ended(now_, *m.ended, m.why)
                  : hand_to_planner(*m.message));
}

recovery_core::effects decision_world::hand_to_planner(const any_msg& m) {
  auto& core = planner_->core;
  if (m.is<NodePresent>())
    return core.node_present(now_, m.as<NodePresent>());
  if (m.is<NodeAway>())
    return core.node_away(now_, m.as<NodeAway>());
  if (m.is<NodeLost>())
    return core.node_lost(now_, m.as<NodeLost>());
  if (m.is<Sealed>())
    return core.sealed(now_, m.as<Sealed>());
  if (m.is<Running>())
    return core.running(now_, m.as<Running>());
  if (m.is<Failed>())
    return core.failed(now_, m.as<Failed>());
  if (m.is<Finished>())
    return core.finished(now_, m.as<Finished>());
  if (m.is<EndAnswer>())
    return core.end_answer(now_, m.as<EndAnswer>());
  return core.stopped(now_, m.as<Stopped>());
}

void decision_world::tick() {
  const auto rings_on = [this](const auto& core) {
    const auto next = core.next_wakeup();
    invariant(!next || *next > now_, "a core rings without pause: " + core.in_words());
  };
  if (planner_) {
    const auto which = planner_->id;
    perform(which, {}, planner_->core.tick(now_));
    if (planner_ && planner_->id == which)
      rings_on(planner_->core);
  }
  if (tree_ && tree_->rendezvous) {
    const auto which = tree_->rendezvous->id;
    perform(which, {}, tree_->rendezvous->core.tick(now_));
    if (lives(which))
      rings_on(tree_->rendezvous->core);
  }
  for (const auto& name : names) {
    if (!tree_ || tree_->members.count(name) == 0)
      continue;
    auto& me = tree_->members.at(name);
    const auto which = me.id;
    perform(which, name, me.core.tick(now_));
    if (lives(which))
      rings_on(me.core);
  }
}

// ---- effects, and what must never be decided ----

template<class Effect>
void decision_world::perform(life whose, const node_name& member,
                             const std::vector<Effect>& effects) {
  for (const auto& effect : effects) {
    if (!calm_ && choose_(falls_every_) == 0)
      choose_(2) == 0 ? planner_falls() : lower_one_falls();
    if (!lives(whose))
      return;
    std::visit([&](const auto& e) { this->obey(member, e); }, effect);
  }
}

// Performed in the other file as well.
template void decision_world::perform(life, const node_name&, const rendezvous_core::effects&);
template void decision_world::perform(life, const node_name&, const member_core::effects&);

void decision_world::obey(const node_name&, const recovery_core::record& e) {
  invariant(!concluded_, "decided after the verdict: " + text(e.message));
  journal_.push_back(e.message);
  if (e.message.is<GenerationProposed>()) {
    const auto g = e.message.as<GenerationProposed>().read()->getGeneration();
    invariant(g > proposed_, "a number is proposed twice");
    proposed_ = g;
    sizes_.erase(sizes_.begin(), sizes_.end() - 1);
  } else if (e.message.is<SizesChanged>()) {
    auto sizes = e.message.as<SizesChanged>().read();
    sizes_.emplace_back(sizes->getNodesMin(), sizes->getNodesMax());
  } else if (e.message.is<Concluded>()) {
    concluded_ = e.message.as<Concluded>().read()->getSuccess();
  } else {
    auto body = e.message.as<RestartCounted>().read();
    invariant(body->getRestartCount() == ++counted_, "restarts are not counted one by one");
    invariant(!of_job_ || counted_ <= *of_job_, "more restarts than the job has");
    const node_name node = body->getNode().cStr();
    if (body->getRestartsUsed() > max_restarts_) {
      // It leaves for this failure. Without a cluster its name has used up its budget for good.
      invariant(replaces_ == body->getNodeLeft(),
                "a node leaves, and its name is another's or not");
      if (!replaces_)
        left_.insert(node);
      counted_against_.erase(node);
    } else {
      invariant(left_.count(node) == 0, "a budget that was used up is used again");
      invariant(++counted_against_[node] <= max_restarts_,
                "more restarts of a node than the budget has");
    }
    invariant(counted_for_.insert(body->getGeneration()).second, "a generation is counted twice");
    invariant(sealed_.count(body->getGeneration()) != 0, "counted for what never ran");
    invariant(!tree_, "counted before the generation has ended");
  }
}

void decision_world::obey(const node_name&, const recovery_core::direct& e) {
  if (e.message.is<Conclude>())
    invariant(concluded_ == e.message.as<Conclude>().read()->getSuccess(),
              "a verdict that is not recorded");
  else
    invariant(!concluded_, "a directive after the verdict");
  for (const auto& name : e.nodes)
    nodes_[name].send(e.message);
}

void decision_world::obey(const node_name&, const recovery_core::stop_generation& e) {
  if (!tree_ || tree_->which != e.which)
    return;
  pass_on({sup::stop_order::cause::asked, e.reason, e.verdict_follows ? verdict_follows : 0,
           std::nullopt});
  settle_tree();
}

void decision_world::obey(const node_name&, const recovery_core::recall_restarts& e) {
  tree_restarts_ = e.used;
}

void decision_world::obey(const node_name&, const recovery_core::verdict& e) {
  invariant(concluded_ == e.success, "a verdict that is not recorded");
  ++verdicts_;
}

/// Ranks are a bijection, in the order of group ranks; and a number names one world.
void decision_world::check_world(const World::Reader& world) {
  std::uint32_t next = 0, group_rank = 0;
  std::string all;
  std::set<node_name> members;
  for (auto m : world.getMembers()) {
    invariant(m.getGroupRank() == group_rank++, "group ranks are not dense");
    invariant(m.getFirstRank() == next, "ranks are not dense");
    next += m.getSlots();
    invariant(members.insert(m.getNode().cStr()).second, "a node is a member twice");
    all += fmt::format("{} ", m.getNode().cStr());
  }
  invariant(next == world.getWorldSize(), "the world's size is not what its members make");
  const auto fits = [&](const auto& sizes) {
    return members.size() >= sizes.first && members.size() <= sizes.second;
  };
  invariant(std::any_of(sizes_.begin(), sizes_.end(), fits) &&
                (nodes_max_ != in_pairs || members.size() % 2 == 0),
            "a world of a wrong size");
  const auto known = worlds_.emplace(world.getGeneration(), all);
  invariant(known.first->second == all, "two worlds of one number");
}

// ---- peace ----

void decision_world::deliver_all() {
  for (int i = 0; i < 10'000; ++i) {
    bool moved = !planner_->mailbox.empty() ||
                 (tree_ && tree_->rendezvous && !tree_->rendezvous->mailbox.empty());
    take_planner_mail();
    take_rendezvous_mail();
    for (const auto& name : names) {
      moved = moved || nodes_[name].has_directives() ||
              (tree_ && tree_->members.count(name) && !tree_->members.at(name).mailbox.empty());
      take_member_mail(name);
      nodes_[name].take_directive();
      take_report(name);
    }
    if (!moved)
      return;
  }
  invariant(false, "messages without end");
}

/// Every deadline leads somewhere, and no worker trains for a generation that is over.
void decision_world::check_patience() {
  using phase = member_core::phase;
  if (tree_)
    for (auto& [name, m] : tree_->members) {
      const auto at = m.core.current_phase();
      if (at != m.waits.first)
        m.waits = {at, now_};
      const bool has_deadline = at != phase::running && at != phase::ready;
      invariant(!has_deadline || m.core.next_wakeup(),
                "a member waits without a deadline: " + m.core.in_words());
      invariant(!has_deadline || now_ - m.waits.second < patience,
                "a member waits for ever: " + m.core.in_words());
    }
  for (const auto& name : names) {
    const auto trains = nodes_[name].trains();
    if (!trains || (tree_ && tree_->which.value == *trains && tree_->members.count(name) != 0)) {
      orphan_since_.erase(name);
      continue;
    }
    const auto since = orphan_since_.emplace(name, now_).first->second;
    invariant(now_ - since < patience, fmt::format("the workers of node {} train on in generation "
                                                   "{}, which is over: {}",
                                                   name, *trains, in_words()));
  }
}

void decision_world::let_be() {
  calm_ = true;
  start_planner();
  if (tree_)
    for (auto& [name, m] : tree_->members)
      m.waits = {m.core.current_phase(), now_};
  for (int round = 0; round < 200; ++round) {
    for (const auto& name : names)
      come(name);
    deliver_all();
    for (const auto& name : names)
      stir(name);
    deliver_all();
    now_ += 5s;
    tick();
    deliver_all();
    check_patience();
  }
  invariant(concluded_.has_value(), "the job never ends: " + in_words());
  invariant(verdicts_ > 0, "the verdict was not told");
  for (const auto& name : names)
    invariant(nodes_[name].heard_verdict(), "a node has not heard the verdict");
}

} // namespace troupe::actors::testing
