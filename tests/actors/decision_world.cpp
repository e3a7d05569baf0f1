#include "tests/actors/decision_world.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors::testing {

using namespace messages;
using node_phase = NodeState::Phase;

namespace {

/// With so many at most, nodes take part in pairs.
constexpr std::uint32_t in_pairs = 4;

rendezvous_options options(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  rendezvous_options o;
  o.nodes_min = nodes_min;
  o.nodes_max = nodes_max;
  o.last_call = 5s;
  o.join_timeout = 100s;
  o.prepare_within = 20s;
  o.recall_within = 10s;
  if (nodes_max == in_pairs)
    o.unit = 2;
  return o;
}

const node_name names[] = {"a", "b", "c", "d"};

} // namespace

decision_world::decision_world(fate choose)
    : choose_(std::move(choose)), trouble_(4 + choose_(3) * 30),
      falls_every_(50 + choose_(4) * 500), failing_(choose_(5)),
      nodes_min_(1 + static_cast<std::uint32_t>(choose_(3))),
      nodes_max_(nodes_min_ + static_cast<std::uint32_t>(choose_(3))),
      max_restarts_(static_cast<std::uint32_t>(choose_(4))) {
  start_cores();
}

void decision_world::start_cores() {
  if (!rendezvous_) {
    rendezvous_.emplace(options(nodes_min_, nodes_max_), author("master/rendezvous"), now_);
    rendezvous_->recall(now_, journal_);
  }
  if (!recovery_) {
    recovery_.emplace(recovery_options{max_restarts_}, author("master/recovery"));
    perform(recovery_->recall(now_, journal_));
  }
}

/// Recovery falls, or rendezvous and recovery with it. All links end, since sessions rely on both.
void decision_world::fall(bool both) {
  ++falls_;
  recovery_fell_ = true;
  recovery_.reset();
  to_recovery_.clear();
  if (both) {
    rendezvous_fell_ = true;
    rendezvous_.reset();
    to_rendezvous_.clear();
  }
  for (const auto& name : names)
    break_link(name);
}

void decision_world::strike() {
  now_ += std::chrono::milliseconds(choose_(50));
  rendezvous_fell_ = recovery_fell_ = false;
  start_cores();
  const auto& name = names[choose_(std::size(names))];
  switch (choose_(16)) {
  case 0:
  case 1:
  case 2:
    return take_letter_to_rendezvous();
  case 3:
  case 4:
  case 5:
    return take_letter_to_recovery();
  case 6:
  case 7:
  case 8:
    return take_directive(name);
  case 9:
  case 10:
    return come(name);
  case 11:
    if (choose_(trouble_) == 0)
      return break_link(name);
    return;
  case 12:
    if (choose_(trouble_) == 0)
      return lose(name);
    return;
  case 13:
    if (choose_(falls_every_) == 0)
      return fall(choose_(2) == 0);
    return;
  case 14:
    now_ += std::chrono::seconds(choose_(12));
    return tick();
  default:
    return stir_node(name);
  }
}

// ---- nodes ----

void decision_world::come(const node_name& name) {
  auto& n = nodes_[name];
  if (n.linked)
    return;
  if (!n.known && n.state.phase != node_phase::IDLE)
    n.state = idle_after(n.state.about.value); // as a new incarnation, its processes gone
  n.linked = n.known = true;
  to_rendezvous_.push_back({{}, present(name, n.state).any()});
}

void decision_world::break_link(const node_name& name) {
  auto& n = nodes_[name];
  if (!n.linked)
    return;
  n.linked = false;
  n.directives.clear();
  to_rendezvous_.push_back({{}, away(name).any()});
}

/// Membership gives a node up that is away, or says goodbye.
void decision_world::lose(const node_name& name) {
  auto& n = nodes_[name];
  if (!n.known)
    return;
  n.linked = n.known = false;
  n.directives.clear();
  to_rendezvous_.push_back({{}, lost(name).any()});
}

void decision_world::report(const node_name& name, const any_msg& m) {
  if (!nodes_.at(name).linked)
    return;
  if (m.is<Prepared>())
    to_rendezvous_.push_back({name, m});
  else
    to_recovery_.push_back({name, m});
}

void decision_world::stir_node(const node_name& name) {
  auto& n = nodes_[name];
  const auto g = n.state.about.value;
  if (n.state.phase == node_phase::DRAINING) {
    n.state = ready_for(g, 4000);
    ready_.emplace(g, name);
    report(name, prepared(name, g, 4000).any());
  } else if (n.state.phase == node_phase::RUNNING) {
    const bool ends = calm_ || choose_(4) == 0;
    if (ends && (calm_ || choose_(8) >= failing_)) {
      n.state = finished_in(g);
      report(name, finished(name, g).any());
    } else if (ends) {
      const int hardware = 201, software = 1;
      const std::vector<int> codes{choose_(8) == 0 ? hardware : software};
      n.state = failed_in(g, codes);
      report(name, failed(name, g, codes).any());
    } else if (choose_(50) == 0) {
      n.state = nothing(); // its leader falls
      break_link(name);
    } else {
      report(name, running(name, g).any());
    }
  }
}

void decision_world::take_directive(const node_name& name) {
  auto& n = nodes_[name];
  if (n.directives.empty())
    return;
  const auto m = n.directives.front();
  n.directives.pop_front();
  follow(name, n, m);
}

void decision_world::follow(const node_name& name, node& n, const any_msg& m) {
  const auto about = m.envelope().about;
  if (m.is<Conclude>()) {
    n.heard_verdict = true;
    n.state = idle_after(n.state.about.value);
    invariant(concluded_ == m.as<Conclude>().read()->getSuccess(),
              "a verdict that is not recorded");
  } else if (n.heard_verdict) {
    invariant(m.is<Stop>(), "a directive after the verdict");
  } else if (m.is<Prepare>() && about > n.state.about) {
    n.state = draining(about.value);
  } else if (m.is<Stop>() && about == n.state.about) {
    n.state = idle_after(about.value);
  } else if (m.is<Start>() && about == n.state.about && n.state.phase == node_phase::PREPARED) {
    n.state = running_in(about.value);
    report(name, running(name, about.value).any());
  }
}

// ---- letters ----

void decision_world::take_letter_to_rendezvous() {
  if (to_rendezvous_.empty() || !rendezvous_)
    return;
  const auto m = to_rendezvous_.front().message;
  to_rendezvous_.pop_front();
  if (m.is<NodePresent>())
    perform(rendezvous_->node_present(now_, m.as<NodePresent>()));
  else if (m.is<NodeAway>())
    perform(rendezvous_->node_away(now_, m.as<NodeAway>()));
  else if (m.is<NodeLost>())
    perform(rendezvous_->node_lost(now_, m.as<NodeLost>()));
  else if (m.is<Prepared>())
    perform(rendezvous_->prepared(now_, m.as<Prepared>()));
  else if (m.is<Reform>())
    perform(rendezvous_->reform(now_, m.as<Reform>()));
  else
    perform(rendezvous_->conclude(now_, m.as<Conclude>()));
}

void decision_world::take_letter_to_recovery() {
  if (to_recovery_.empty() || !recovery_)
    return;
  const auto m = to_recovery_.front().message;
  to_recovery_.pop_front();
  if (m.is<Sealed>())
    perform(recovery_->sealed(now_, m.as<Sealed>()));
  else if (m.is<Unformable>())
    perform(recovery_->unformable(now_, m.as<Unformable>()));
  else if (m.is<NodesWaiting>())
    perform(recovery_->nodes_waiting(now_, m.as<NodesWaiting>()));
  else if (m.is<Indispensable>())
    perform(recovery_->indispensable(now_, m.as<Indispensable>()));
  else if (m.is<NodePresent>())
    perform(recovery_->node_present(now_, m.as<NodePresent>()));
  else if (m.is<NodeAway>())
    perform(recovery_->node_away(now_, m.as<NodeAway>()));
  else if (m.is<NodeLost>())
    perform(recovery_->node_lost(now_, m.as<NodeLost>()));
  else if (m.is<Running>())
    perform(recovery_->running(now_, m.as<Running>()));
  else if (m.is<Failed>())
    perform(recovery_->failed(now_, m.as<Failed>()));
  else
    perform(recovery_->finished(now_, m.as<Finished>()));
}

void decision_world::tick() {
  if (!rendezvous_)
    return;
  perform(rendezvous_->tick(now_));
  const auto next = rendezvous_ ? rendezvous_->next_wakeup() : std::nullopt;
  invariant(!next || *next > now_, "rendezvous rings without pause");
}

// ---- effects, and what must never be decided ----

template<class Effects>
void decision_world::perform(const Effects& effects) {
  for (const auto& effect : effects) {
    if (!calm_ && choose_(falls_every_) == 0)
      fall(choose_(2) == 0);
    if (fell(effects))
      return;
    std::visit([this](const auto& e) { this->obey(e); }, effect);
  }
}

void decision_world::obey(const rendezvous_core::record& e) {
  journal_.push_back(e.message);
  if (e.message.is<GenerationProposed>()) {
    const auto g = e.message.as<GenerationProposed>().read()->getGeneration();
    invariant(g > proposed_, "a number is proposed twice");
    proposed_ = g;
    return;
  }
  auto body = e.message.as<GenerationSealed>().read();
  const auto g = body->getWorld().getGeneration();
  invariant(sealed_.insert(g).second, "a number is sealed twice");
  invariant(g == proposed_, "sealed is what was proposed last");
  check_world(body->getWorld());
  for (auto m : body->getWorld().getMembers())
    invariant(ready_.count({g, m.getNode().cStr()}) != 0, "sealed before all are ready");
}

void decision_world::obey(const rendezvous_core::direct& e) {
  const auto g = e.message.envelope().about.value;
  if (e.message.is<Prepare>()) {
    invariant(g == proposed_, "prepared before it is on record");
    check_world(e.message.as<Prepare>().read()->getWorld());
  } else if (e.message.is<Start>()) {
    invariant(sealed_.count(g) != 0, "started before it is sealed");
  } else if (e.message.is<Conclude>()) {
    invariant(concluded_.has_value(), "concluded before it is on record");
  }
  for (const auto& name : e.nodes)
    if (nodes_[name].linked)
      nodes_[name].directives.push_back(e.message);
}

void decision_world::obey(const rendezvous_core::inform_recovery& e) {
  to_recovery_.push_back({{}, e.message});
}

void decision_world::obey(const rendezvous_core::expel& e) {
  lose(e.node);
}

void decision_world::obey(const recovery_core::record& e) {
  invariant(!concluded_, "decided after the verdict: " + text(e.message));
  journal_.push_back(e.message);
  if (e.message.is<Concluded>()) {
    concluded_ = e.message.as<Concluded>().read()->getSuccess();
    return;
  }
  auto body = e.message.as<RestartCharged>().read();
  invariant(body->getRestartCount() == ++charged_, "restarts are not counted one by one");
  invariant(++charged_to_[body->getNode().cStr()] <= max_restarts_,
            "more restarts of a node than the budget has");
  invariant(charged_for_.insert(body->getGeneration()).second, "a generation is charged twice");
  invariant(sealed_.count(body->getGeneration()) != 0, "charged for what never ran");
}

void decision_world::obey(const recovery_core::instruct& e) {
  to_rendezvous_.push_back({{}, e.message});
}

void decision_world::obey(const recovery_core::verdict& e) {
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
  invariant(members.size() >= nodes_min_ && members.size() <= nodes_max_ &&
                (nodes_max_ != in_pairs || members.size() % 2 == 0),
            "a world of a wrong size");
  const auto known = worlds_.emplace(world.getGeneration(), all);
  invariant(known.first->second == all, "two worlds of one number");
}

// ---- peace ----

void decision_world::deliver_all() {
  for (int i = 0; i < 10'000; ++i) {
    bool moved = !to_rendezvous_.empty() || !to_recovery_.empty();
    take_letter_to_rendezvous();
    take_letter_to_recovery();
    for (const auto& name : names) {
      moved = moved || !nodes_[name].directives.empty();
      take_directive(name);
    }
    if (!moved)
      return;
  }
  invariant(false, "messages without end");
}

void decision_world::let_be() {
  calm_ = true;
  rendezvous_fell_ = recovery_fell_ = false;
  start_cores();
  for (int round = 0; round < 200; ++round) {
    for (const auto& name : names)
      come(name);
    deliver_all();
    for (const auto& name : names)
      stir_node(name);
    deliver_all();
    now_ += 5s;
    tick();
    deliver_all();
  }
  invariant(concluded_.has_value(),
            "the job never ends: " + rendezvous_->in_words() + "; " + recovery_->in_words());
  invariant(verdicts_ > 0, "nobody was told the verdict");
  for (const auto& name : names)
    invariant(nodes_.at(name).heard_verdict, "a node has not heard the verdict");
}

} // namespace troupe::actors::testing
