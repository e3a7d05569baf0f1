#pragma once

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/master/rendezvous/rendezvous_core.hpp"
#include "tests/actors/fate.hpp"
#include "tests/actors/vocabulary.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// rendezvous_core and recovery_core wired together, with a naive journal, naive nodes and links
/// that lose what is on its way. Either core, or both, may fall at any effect and start anew from
/// the journal. Throws invariant_broken as soon as something is decided that must never be.
class decision_world {
 public:
  explicit decision_world(fate choose);

  /// One thing happens: a message arrives, a node comes, breaks, returns, is lost; its workers fail
  /// or finish; somebody falls; time passes.
  void strike();

  /// No more faults: who is away returns, everything arrives, workers finish, time passes. Throws
  /// unless the job is concluded in the end, and everyone who is there has heard it.
  void let_be();

  /// How much has happened: whether a property was put to the test at all.
  struct tally {
    std::size_t sealed = 0;
    std::size_t charged = 0;
    std::size_t falls = 0;
    std::size_t successes = 0;
    std::size_t failures = 0;
  };
  tally count() const {
    return {sealed_.size(), charged_, falls_, concluded_ == true, concluded_ == false};
  }

 private:
  struct node {
    bool linked = false;
    bool known = false; ///< the master has not lost it since it came
    doing state;
    bool heard_verdict = false;
    std::deque<messages::any_msg> directives; ///< on their way to it
  };
  struct letter {
    node_name from; ///< a node; empty: from the other core, or membership
    messages::any_msg message;
  };

  void start_cores();
  void fall(bool both);
  /// Performs effects in order, up to a fall of the core they come from.
  template<class Effects>
  void perform(const Effects& effects);
  bool fell(const rendezvous_core::effects&) const { return rendezvous_fell_; }
  bool fell(const recovery_core::effects&) const { return recovery_fell_; }
  void obey(const rendezvous_core::record& e);
  void obey(const rendezvous_core::direct& e);
  void obey(const rendezvous_core::inform_recovery& e);
  void obey(const rendezvous_core::expel& e);
  void obey(const rendezvous_core::announce_end&) {}
  void obey(const rendezvous_core::note&) {}
  void obey(const recovery_core::record& e);
  void obey(const recovery_core::instruct& e);
  void obey(const recovery_core::verdict& e);
  void obey(const recovery_core::note&) {}

  void take_letter_to_rendezvous();
  void take_letter_to_recovery();
  void take_directive(const node_name& name);
  void follow(const node_name& name, node& n, const messages::any_msg& directive);
  void report(const node_name& name, const messages::any_msg& m);
  void stir_node(const node_name& name);
  void come(const node_name& name);
  void break_link(const node_name& name);
  void lose(const node_name& name);
  void deliver_all();
  void tick();
  void check_world(const messages::World::Reader& world);

  fate choose_;
  // How hard this world is, drawn for each.
  std::uint64_t trouble_;     ///< one of so many strikes that could be bad for links and nodes is
  std::uint64_t falls_every_; ///< effects
  std::uint64_t failing_;     ///< of 8 ends of workers
  bool calm_ = false;
  instant now_ = dawn;
  std::uint32_t nodes_min_;
  std::uint32_t nodes_max_;
  std::uint32_t max_restarts_;
  std::optional<rendezvous_core> rendezvous_;
  std::optional<recovery_core> recovery_;
  std::map<node_name, node> nodes_;
  std::deque<letter> to_rendezvous_;
  std::deque<letter> to_recovery_;
  // The effects at hand die with their core.
  bool rendezvous_fell_ = false;
  bool recovery_fell_ = false;

  // What is on record.
  std::vector<messages::any_msg> journal_;
  std::uint64_t proposed_ = 0;
  std::map<std::uint64_t, std::string> worlds_; ///< as announced by Prepare, by number
  std::map<std::uint64_t, std::set<node_name>> members_;
  std::set<std::uint64_t> sealed_;
  std::set<std::pair<std::uint64_t, node_name>> ready_; ///< who ever said Prepared, for which
  std::uint32_t charged_ = 0;
  std::map<node_name, std::uint32_t> charged_to_;
  std::set<std::uint64_t> charged_for_;
  std::optional<bool> concluded_;
  std::size_t verdicts_ = 0;
  std::size_t falls_ = 0;
};

} // namespace troupe::actors::testing
