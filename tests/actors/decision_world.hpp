#pragma once

#include "actors/master/job/generation/member/member_core.hpp"
#include "actors/master/job/generation/rendezvous/rendezvous_core.hpp"
#include "actors/master/recovery/recovery_core.hpp"
#include "tests/actors/fate.hpp"
#include "tests/actors/naive_node.hpp"
#include "tests/actors/vocabulary.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::testing {

/// The master's decisions wired together: the planner, and for the generation that is up its
/// rendezvous and its members, under a naive supervisor of one fate; with a naive membership, a
/// naive journal, naive nodes, and links that lose what is on its way. Any of the cores may fall at
/// any effect: the planner takes the generation with it and begins anew from the journal, a member
/// or the rendezvous ends its generation. Throws invariant_broken as soon as something is decided
/// that must never be.
class decision_world {
 public:
  explicit decision_world(fate choose);

  /// One thing happens: a message arrives, a node comes, breaks, returns, is lost; its workers fail
  /// or finish; a core falls; time passes.
  void strike();
  void scale();

  /// No more faults: nodes that are away return, everything arrives, workers finish, time passes.
  /// Throws unless the job is concluded in the end, every node that is there has heard it, and on
  /// the way nothing waits for ever.
  void let_be();

  /// How much has happened: whether a property was put to the test at all.
  struct tally {
    std::size_t sealed = 0;
    std::size_t counted = 0;
    std::size_t falls = 0;
    std::size_t evicted = 0;
    std::size_t successes = 0;
    std::size_t failures = 0;
  };
  tally count() const {
    return {sealed_.size(), counted_, falls_, evicted_, concluded_ == true, concluded_ == false};
  }

 private:
  /// One incarnation of a core; what it was about to do dies with it.
  using life = std::uint64_t;

  struct mail {
    std::optional<messages::any_msg> message;
    std::optional<sup::stop_order> order; ///< for a member
    bool begin = false;                   ///< for a member: the first event
    /// For the planner: this generation has ended.
    std::optional<generation> ended;
    std::optional<std::string> why;
  };
  template<class Core>
  struct actor {
    life id;
    Core core;
    std::deque<mail> mailbox{};
  };
  struct member_actor : actor<member_core> {
    /// In peace: since when it is in this phase.
    std::pair<member_core::phase, instant> waits;
  };
  /// The naive supervisor of one fate: what is up, and why it comes down.
  struct tree {
    generation which;
    std::optional<actor<rendezvous_core>> rendezvous;
    std::map<node_name, member_actor> members;
    std::optional<sup::stop_order> order;
    std::optional<std::string> why;
  };

  void start_planner();
  /// The planner, a member or the rendezvous, by chance or as it is told.
  void planner_falls();
  void lower_one_falls();

  // The naive supervisor (decision_world_tree.cpp).
  void start_tree(const recovery_core::start_generation& e);
  void fails(const std::string& why);
  void pass_on(const sup::stop_order& order);
  void ends(const node_name& member, const std::optional<std::string>& why);
  void rendezvous_ends(const std::optional<std::string>& why);
  void settle_tree();
  void end_tree_with_planner();
  bool lives(life which) const;

  // Mail.
  void take_planner_mail();
  void take_rendezvous_mail();
  void take_member_mail(const node_name& name);
  void take_report(const node_name& name);
  recovery_core::effects hand_to_planner(const messages::any_msg& m);
  member_core::effects hand_to_member(member_core& core, const mail& m);

  // Effects, in order, up to a fall of the core that they come from.
  template<class Effect>
  void perform(life whose, const node_name& member, const std::vector<Effect>& effects);
  void obey(const node_name&, const recovery_core::record& e);
  void obey(const node_name&, const recovery_core::direct& e);
  void obey(const node_name&, const recovery_core::start_generation& e) { start_tree(e); }
  void obey(const node_name&, const recovery_core::stop_generation& e);
  void obey(const node_name&, const recovery_core::recall_restarts& e);
  void obey(const node_name&, const recovery_core::evict& e) { evict(e.node); }
  void obey(const node_name&, const recovery_core::mark&) {}
  void obey(const node_name&, const recovery_core::lose&) {}
  void obey(const node_name&, const recovery_core::replace&) {}
  void obey(const node_name&, const recovery_core::reply&) {}
  void obey(const node_name&, const recovery_core::check_nodes&) {
    invariant(false, "no check was asked for");
  }
  void obey(const node_name&, const recovery_core::announce_end&) {}
  void obey(const node_name&, const recovery_core::verdict& e);
  void obey(const node_name&, const recovery_core::note&) {}
  void obey(const node_name&, const rendezvous_core::record& e);
  void obey(const node_name&, const rendezvous_core::start& e);
  void obey(const node_name&, const rendezvous_core::sealed& e);
  void obey(const node_name&, const rendezvous_core::evict& e) { evict(e.node); }
  void obey(const node_name&, const rendezvous_core::note&) {}
  void obey(const node_name&, const rendezvous_core::done&) { rendezvous_ends(std::nullopt); }
  void obey(const node_name& me, const member_core::direct& e);
  void obey(const node_name& me, const member_core::tell_rendezvous& e);
  void obey(const node_name& me, const member_core::report& e);
  void obey(const node_name& me, const member_core::fail_early& e);
  void obey(const node_name& me, const member_core::evict& e);
  void obey(const node_name& me, const member_core::end& e) { ends(me, e.why); }

  // The naive membership.
  void come(const node_name& name);
  void break_link(const node_name& name);
  void lose(const node_name& name);
  void evict(const node_name& name);

  void stir(const node_name& name);
  void tick();
  void deliver_all();
  void check_world(const messages::World::Reader& world);
  void check_restarts() const;
  void check_patience();
  std::string in_words() const;

  fate choose_;
  // How hard this world is, drawn for each.
  std::uint64_t trouble_;     ///< one of so many strikes that could be bad for links and nodes is
  std::uint64_t falls_every_; ///< effects
  std::uint64_t failing_;     ///< of 8 ends of workers
  bool calm_ = false;
  instant now_ = dawn;
  std::uint32_t nodes_min_;
  std::uint32_t nodes_max_;
  /// Lowest and highest, as they were since the newest proposal: a world is formed by one of them.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes_;
  std::uint32_t max_restarts_;
  bool replaces_; ///< the cluster gives another machine for a node that leaves
  std::set<node_name> left_;
  std::optional<std::uint32_t> of_job_; ///< restarts of all nodes
  life lives_ = 0;
  std::optional<actor<recovery_core>> planner_;
  std::optional<tree> tree_;
  std::map<node_name, std::uint32_t> tree_restarts_; ///< the job's, since the planner began
  std::map<node_name, naive_node> nodes_;
  /// What a node said before its member was there.
  std::map<node_name, std::deque<messages::any_msg>> for_member_;
  /// In peace: since when a node trains in a generation that is over.
  std::map<node_name, instant> orphan_since_;

  // What is on record.
  std::vector<messages::any_msg> journal_;
  std::uint64_t proposed_ = 0;
  std::map<std::uint64_t, std::string> worlds_; ///< as announced by Prepare, by number
  std::set<std::uint64_t> sealed_;
  std::uint32_t counted_ = 0;
  std::map<node_name, std::uint32_t> counted_against_;
  std::set<std::uint64_t> counted_for_;
  std::optional<bool> concluded_;
  std::size_t verdicts_ = 0;
  std::size_t falls_ = 0;
  std::size_t evicted_ = 0;
};

} // namespace troupe::actors::testing
