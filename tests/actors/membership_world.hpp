#pragma once

#include "actors/master/membership/membership_core.hpp"
#include "runtime/base/invariant.hpp"
#include "tests/actors/fate.hpp"
#include "tests/actors/vocabulary.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::actors::testing {

/// Nodes that say hello, break, say goodbye, under a few names and incarnations, before one
/// membership_core. Throws invariant_broken as soon as it announces what cannot be.
class membership_world {
 public:
  explicit membership_world(fate choose) : choose_(std::move(choose)) {}

  void strike() {
    now_ += std::chrono::milliseconds(choose_(1'500));
    const node_name node = "n" + std::to_string(choose_(3));
    switch (choose_(6)) {
    case 0:
    case 1:
      return says_hello(node);
    case 2:
      return link_ends(some_session());
    case 3:
      return act(core_.departed(now_, some_session(), "bye"));
    case 4:
      return act(core_.evict(now_, node, "too slow", choose_(2) == 0));
    default:
      act(core_.tick(now_));
      const auto next = core_.next_wakeup();
      invariant(!next || *next > now_, "membership rings without pause");
      check_presence();
    }
  }

 private:
  enum class standing { unknown, present, away };

  void says_hello(const node_name& node) {
    const session_id id{++sessions_};
    hellos_[id] = {node, 1 + choose_(4)};
    open_.insert(id);
    act(core_.hello(now_, id, hello(node, hellos_[id].second)));
    const auto answers = welcomed_.count(id) + refused_.count(id) + sent_off_.count(id);
    invariant(answers == 1 || (answers == 0 && core_.is_taken_over(node)),
              "a hello has one answer, but for one that waits for an earlier node");
    check_presence();
  }

  session_id some_session() {
    if (open_.empty())
      return session_id{0};
    return *std::next(open_.begin(), static_cast<std::ptrdiff_t>(choose_(open_.size())));
  }

  void link_ends(session_id id) {
    open_.erase(id);
    const auto how = static_cast<ports::link_end>(choose_(4));
    act(core_.closed(now_, id, {how, "reset by peer"}));
  }

  void act(const membership_core::effects& effects) {
    for (const auto& effect : effects)
      std::visit([this](const auto& e) { this->obey(e); }, effect);
  }

  void obey(const membership_core::welcome& e) {
    invariant(welcomed_.insert(e.session).second, "welcomed twice");
    invariant(!lost_.count(hellos_.at(e.session)), "a lost incarnation is welcome again");
    invariant(!core_.is_taken_over(hellos_.at(e.session).first),
              "a newcomer is let in beside the node whose name it has");
  }
  void obey(const membership_core::refuse& e) { refused_.insert(e.session); }
  void obey(const membership_core::fence& e) {
    invariant(open_.count(e.session) != 0, "a link that is gone is fenced");
    fenced_.insert(e.session);
  }
  void obey(const membership_core::send_off& e) { sent_off_.insert(e.session); }
  void obey(const membership_core::let_go& e) {
    const node_name node = e.message.read()->getNode().cStr();
    invariant(running_.erase(node) == 1, "a node is let go that was not waited for");
  }
  void obey(const membership_core::take_options&) {
    invariant(false, "a master that takes no options has taken some");
  }
  void obey(const membership_core::announce& e) {
    using namespace messages;
    if (e.message.is<NodePresent>()) {
      auto m = e.message.as<NodePresent>().read();
      auto& is = standing_[m->getNode().cStr()];
      which_[m->getNode().cStr()] = m->getIncarnation();
      is = standing::present;
    } else if (e.message.is<NodeAway>()) {
      auto& is = standing_[e.message.as<NodeAway>().read()->getNode().cStr()];
      invariant(is == standing::present, "away, but it was not there");
      is = standing::away;
    } else {
      const node_name node = e.message.as<NodeLost>().read()->getNode().cStr();
      invariant(standing_[node] != standing::unknown, "lost, but it was not known");
      standing_[node] = standing::unknown;
      invariant(!e.may_run || running_.insert(node).second, "a node is waited for twice");
      lost_.emplace(node, which_[node]);
    }
  }
  void obey(const membership_core::everyone_left&) {}
  void obey(const membership_core::note&) {}

  void check_presence() const {
    std::set<node_name> present;
    std::set<session_id> used;
    for (const auto& [node, id] : core_.present()) {
      present.insert(node);
      invariant(used.insert(id).second, "two nodes behind one link");
      invariant(core_.session_of(node) == id, "two answers to one question");
      invariant(welcomed_.count(id) != 0 && !fenced_.count(id), "a node behind a wrong link");
      invariant(hellos_.at(id).first == node, "a node behind another's link");
    }
    for (const auto& [node, is] : standing_)
      invariant((is == standing::present) == (present.count(node) != 0),
                "what was announced is not what is");
  }

  fate choose_;
  membership_core core_{membership_options{"job", 3s, 6s, 11s, 60s, 1s},
                        messages::author("master/membership"), dawn};
  instant now_ = dawn;
  std::uint64_t sessions_ = 0;
  std::map<session_id, std::pair<node_name, std::uint64_t>> hellos_;
  std::set<session_id> open_, welcomed_, refused_, fenced_, sent_off_;
  std::set<node_name> running_; ///< lost, and may run workers
  std::map<node_name, standing> standing_;
  std::map<node_name, std::uint64_t> which_;
  std::set<std::pair<node_name, std::uint64_t>> lost_;
};

} // namespace troupe::actors::testing
