#pragma once

#include "actors/master/rendezvous/growth.hpp"
#include "actors/master/rendezvous/ranks.hpp"
#include "actors/master/rendezvous/world_sizes.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/reminder.hpp"
#include "runtime/base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct rendezvous_options : world_sizes {
  /// The first world, with MIN nodes here and not yet MAX: how long others are waited for. Nothing:
  /// until nobody has come for `settle`, but no longer than `settle_most`.
  std::optional<duration> last_call;
  duration settle = limits::settle;
  duration settle_most = limits::settle_most;
  growth_options growth;
  /// How many nodes may have to be waited for after the first world, in the life of the job: those
  /// without which fewer than MIN are left. Nothing: as many as it takes.
  std::optional<std::uint32_t> relaunches_max;
  duration join_timeout = limits::join_timeout;
  /// How long a member may take from Prepare to Prepared: its shutdown timeout and then some.
  duration prepare_within = limits::stop_workers_within + limits::prepare_slack;
  /// After a restart of the master: how long the members of the recalled generation may take to
  /// come back.
  duration recall_within = limits::recall_within;
};

/// Who takes part. Forms numbered generations out of the nodes that are present and is the only one
/// that gives them directives (Prepare, Start, Stop, Conclude); it repeats the current one to a
/// node that comes back.
///
/// In a running generation it decides nothing about failures: it passes what happens to members on
/// to recovery, which asks for the next generation with Reform. Nodes that would make the world
/// larger are told to recovery too; those that would not are spares: they stand by, and take the
/// ranks of who is lost.
class rendezvous_core {
 public:
  enum class phase {
    gathering, ///< Waiting for enough nodes.
    preparing, ///< A world is proposed; members stop older generations and get ready.
    running,   ///< The world is sealed and was told to start.
    concluded, ///< The job is over; whoever comes is told so.
  };

  /// Append to the journal; everything after it waits for the acknowledgement.
  struct record {
    messages::any_msg message;
  };
  /// Send to these nodes, one message shared by all.
  struct direct {
    std::vector<node_name> nodes;
    messages::any_msg message;
  };
  struct inform_recovery {
    messages::any_msg message;
  };
  /// Have membership give a node up; with `may_rejoin` a new incarnation of it is welcome.
  struct expel {
    node_name node;
    std::string reason;
    bool may_rejoin;
  };
  /// Tell membership that the job is over.
  struct announce_end {};
  struct note {
    log::event event;
  };
  using effect = std::variant<record, direct, inform_recovery, expel, announce_end, note>;
  using effects = std::vector<effect>;

  rendezvous_core(rendezvous_options options, messages::author author, instant now);

  /// Takes up what an earlier incarnation or master recorded; before anything else.
  void recall(instant now, const std::vector<messages::any_msg>& history);

  effects node_present(instant now, const messages::msg<messages::NodePresent>& m);
  effects node_away(instant now, const messages::msg<messages::NodeAway>& m);
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);
  effects prepared(instant now, const messages::msg<messages::Prepared>& m);
  /// Answered with Indispensable instead, if it names a node that cannot be spared.
  effects reform(instant now, const messages::msg<messages::Reform>& m);
  effects conclude(instant now, const messages::msg<messages::Conclude>& m);
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  phase current_phase() const { return phase_; }
  generation current() const { return current_; }
  std::string in_words() const;

 private:
  struct present_node {
    candidate who;
    bool away = false;
  };
  struct store_place {
    std::string address;
    std::uint16_t port = 0;
    bool hosted = false; ///< by the node supervisor, else by a worker
  };

  // Transitions; nothing else assigns phase_.
  void become_gathering(effects& out, instant now);
  void become_preparing(effects& out, instant now);
  void become_running(effects& out, instant now);

  bool is_member(const node_name& node) const;
  std::vector<node_name> member_names() const;
  std::vector<node_name> everyone() const;
  /// Objections to a node's wish for a rank; empty if none.
  std::string rank_objection(const candidate& c) const;
  /// Who is here, but for `without`, in the order of their claims to a place: members of the last
  /// world by rank, then who asked for a rank, then by arrival.
  std::vector<candidate> claimants(const node_name& without = {}) const;
  std::uint32_t largest_world(const std::vector<candidate>& of) const;
  /// With how many nodes nobody else could take part; taking them all to be alike.
  std::uint32_t most_nodes() const;
  void consider_sealing(effects& out, instant now);
  void consider_proposing(effects& out, instant now);
  void not_enough(effects& out, instant now);
  /// Whether to wait for more, though there are enough.
  bool settling(instant now) const;
  /// Until when; nothing: until who is away is back or lost.
  std::optional<instant> settled_at() const;
  bool waits_for_members() const;
  void propose(effects& out, instant now, std::vector<candidate> present, std::uint32_t size);
  void consider_growing(effects& out, instant now);
  std::optional<instant> growth_due() const;
  void tell_spares(effects& out, const std::vector<candidate>& all);
  void forget(const node_name& node);
  /// The nodes that have to be waited for before any world can be formed.
  std::uint32_t missing() const;
  void take_prepared(effects& out, instant now, const node_name& node, std::uint16_t store_port,
                     bool store_hosted);
  void stop_members(effects& out, const std::string& reason);
  void stop_what_has_ended(effects& out, const node_name& node, messages::NodeState::Reader state);
  /// Brings a member that has a new link up to date, given what it says of itself.
  void repeat_directive(effects& out, instant now, const messages::msg<messages::NodePresent>& m);
  void consider_giving_up(effects& out, instant now);
  void consider_relaunches(effects& out);
  void give_up(effects& out, const std::string& why);
  void remind(effects& out, instant now);
  log::event joined_in_words(const node_name& node) const;
  log::event sealed_in_words(duration took) const;
  log::event settling_in_words() const;
  log::event relaunched_in_words() const;
  std::string spare_in_words(std::size_t present) const;
  log::event standing_by_in_words(const std::vector<node_name>& spares,
                                  const std::string& why) const;
  void expel_unprepared(effects& out, instant now);
  void stop_waiting_for_return(effects& out, instant now);
  void write_world(messages::World::Builder out) const;
  messages::any_msg prepare_message();
  messages::any_msg start_message();
  messages::any_msg stop_message(generation which, const std::string& reason);

  rendezvous_options options_;
  messages::author author_;
  phase phase_ = phase::gathering;
  /// The newest number ever proposed; a number is never used for two worlds.
  generation current_{};
  /// The newest that any node has heard of. Beyond current_ only if the journal lost its tail (a
  /// power cut).
  generation newest_heard_{};
  std::map<node_name, present_node> nodes_;
  std::size_t away_count_ = 0; ///< among nodes_
  std::uint64_t arrivals_ = 0;
  instant last_arrival_{};
  /// Who is here and has asked for a rank.
  std::map<std::uint32_t, node_name> wanted_ranks_;
  std::uint32_t restart_count_ = 0;
  std::uint32_t relaunches_ = 0;
  /// Gathering: how many nodes at most were missing at once.
  std::uint32_t waited_for_ = 0;

  std::vector<seat> world_;     ///< of current_, in order of group rank; empty while gathering
  std::set<node_name> members_; ///< the names in world_
  std::set<node_name> prepared_;
  instant prepare_until_{};
  std::set<node_name>
      lost_members_; ///< running: what recovery has been told, and may have forgotten
  store_place store_;
  /// Of the world that was sealed last; empty before the first.
  std::map<node_name, std::uint32_t> last_group_ranks_;
  messages::any_msg conclusion_;

  instant phase_since_{};
  reminder waiting_;                    ///< gathering and preparing
  std::optional<instant> enough_since_; ///< gathering: when nodes_min was reached
  bool first_world_ = true;             ///< none was proposed yet
  bool gave_up_ = false; ///< gathering: that no world can be formed has been reported
  growth growth_;
  std::set<node_name> standing_by_; ///< who has been told so
  /// For nodes of so many slots.
  mutable std::optional<std::pair<std::uint32_t, std::uint32_t>> most_nodes_;
  /// The past was recalled; until recall_within later its members are only away, not lost.
  std::optional<instant> recalled_at_;
};

} // namespace troupe::actors
