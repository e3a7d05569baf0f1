#pragma once

#include "actors/command_identity.hpp"
#include "actors/limits.hpp"
#include "messages/job_words.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/reminder.hpp"
#include "runtime/base/time.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct uplink_options {
  std::string job;
  node_name node;
  /// Where other nodes reach this one.
  std::string address;
  /// There, for bulk links; 0: nowhere.
  std::uint16_t bulk_port = 0;
  std::uint32_t slots = 1;
  /// Of this node's workers (--role).
  std::string role;
  std::optional<std::uint32_t> wanted_rank;
  bool rank_is_found = false; ///< in a scheduler's variables
  /// Above this node, the top of the network first (--switches).
  std::vector<std::string> switches;
  std::vector<std::string> machine; ///< other names of the machine below it
  /// The size of the job as this node was told; 0: it was not.
  std::uint32_t nodes_min = 0;
  std::uint32_t nodes_max = 0;
  /// How many failures of its workers this node was told to bear (--max-restarts).
  std::uint32_t max_restarts = 0;
  /// How long this node's workers may take to end.
  duration stop_within = limits::stop_workers_within;
  command_identity command;
  /// What this node was told of the job.
  messages::job_words of_job;
  /// For people: "10.0.0.1:29400".
  std::string master;
  /// How long a node without running workers tries to reach the master: before the first welcome,
  /// and again after the link was lost.
  duration connect_within = limits::connect_within;
  /// How long a node trains on without its master.
  duration train_on_within = limits::train_on_within;
  /// How long workers train on that other nodes may have replaced.
  duration isolated_within = limits::isolated_within;
  duration lease = limits::lease; ///< of links to the master
  duration redial_first = limits::redial_first;
  duration redial_max = limits::redial_max;
};

/// The node's way to the master: dials, says hello with the node's whole state, and again after
/// every loss, with back-off and jitter.
///
/// When it gives up: a master that has never welcomed this node and refuses the connection ends the
/// node at once, since trying again would not change the token or the certificate. Once the node
/// has followed a master, only a `Refused` of this job's master counts: whatever else answers at
/// its address (a web server, another job's master) answers in its absence. Without a link, a node
/// that has nothing running waits for `connect_within`. A node whose workers train needs no master
/// and waits for `train_on_within`; but if the others could form a world without it (as the master
/// said, else if the job may shrink), and the network does not answer either, this node may be the
/// one that is cut off and replaced: then its workers end when other nodes say so, or do not answer
/// either, and after `isolated_within` at the latest, so that no rank is trained twice for long;
/// and it waits as if idle.
class uplink_core {
 public:
  enum class phase {
    resting, ///< Waits for the next attempt.
    asking,  ///< Asks the agent what to say in the hello.
    dialling,
    greeting, ///< Has a link, waits for Welcome.
    linked,
    over, ///< Gave up or was refused.
  };
  static constexpr phase_table<phase> phases{
      "an uplink",
      {
          {phase::resting, "resting", {phase::asking, phase::over}},
          {phase::asking, "asking", {phase::dialling, phase::resting, phase::over}},
          {phase::dialling, "dialling", {phase::greeting, phase::resting, phase::over}},
          {phase::greeting, "greeting", {phase::linked, phase::resting, phase::over}},
          {phase::linked, "linked", {phase::resting, phase::over}},
          {phase::over, "over", {}},
      }};

  /// Before each hello, as only the agent knows what runs here.
  struct ask_state {};
  struct dial {
    messages::msg<messages::Hello> hello;
  };
  /// Use the link of this attempt from now on; an older one is dropped.
  struct close_link {
    std::string reason;
  };
  /// A report, for the master. Nothing is kept for a later link but what happened since its hello
  /// was written: the hello says the rest.
  struct say {
    messages::any_msg message;
  };
  /// A directive of the master, for the agent.
  struct deliver {
    messages::any_msg message;
  };
  /// Welcomed: an actor that says everything once on each link says it now.
  struct linked {};
  /// The agent must end this generation's processes: the node joins anew. An order of this node's
  /// own, in the words that the master would use: the agent needs no second way to end a
  /// generation.
  struct start_over {
    messages::msg<messages::Stop> message;
  };
  struct give_up {
    std::string reason;
  };
  struct note {
    log::event event;
  };
  using effect =
      std::variant<ask_state, dial, close_link, say, deliver, linked, start_over, give_up, note>;
  using effects = std::vector<effect>;

  /// `which` is this node's incarnation until a master gives it up; `author` follows the newest
  /// master that the node has followed; `dispensable` is what the last uplink had heard.
  uplink_core(uplink_options options, messages::author author, random_source random,
              incarnation which, instant now, std::optional<bool> dispensable = {});

  effects tick(instant now);
  effects state_known(instant now, const messages::msg<messages::NodeState>& state);
  effects state_unknown(instant now, const std::string& why);
  effects dialled(instant now, const std::optional<error>& failure);
  effects received(instant now, const messages::any_msg& m);
  effects closed(instant now, const std::string& reason);
  /// The agent reports. What the next hello will say is dropped; what happened after the hello was
  /// written, and before it was answered, is said after it.
  effects report(const messages::any_msg& m);
  /// Other nodes know whether the master is away or this node is.
  effects neighbours_said(instant now, const messages::msg<messages::NeighboursSaid>& m);
  /// How this node reaches its master, for its neighbours.
  messages::MasterReach::Reach reach() const;
  /// Counts the losses of a link: what is said of an earlier one says nothing of this.
  std::uint64_t outage() const { return outages_; }
  /// The agent has restarted: the master must hear its state, which a hello carries; or the agent
  /// must hear again how it ended.
  effects renew(instant now);

  std::optional<instant> next_wakeup() const;
  phase current_phase() const { return phase_; }
  /// As whom the node says hello; its next uplink must go on as the same.
  incarnation which() const { return which_; }
  term follows() const { return author_.following(); }
  /// As the master said of this node's part in the job; its next uplink must go by it.
  std::optional<bool> dispensable() const { return dispensable_; }
  std::string in_words() const;

 private:
  /// The link is this node's to let go of, and the next attempt follows.
  void redial(effects& out, instant now, const std::string& why);
  void report_error(effects& out, instant now, const std::string& why);
  /// What was learned in the last outage says nothing about this one.
  void lost_link(instant now);
  bool has_followed() const { return was_linked_ || author_.following() > term{}; }
  /// Whether the node trains on while it waits.
  bool trains_on() const;
  /// Counted from two different moments, and so it can move: a node that stops training has an idle
  /// node's time left, from then on.
  instant gives_up_at() const;
  /// A rank that is trained in two worlds writes two histories into one checkpoint
  /// directory, so the side that may be cut off gives way.
  void end_isolated_workers(effects& out, instant now);
  void end_workers(effects& out, const std::string& why);
  void become_resting(effects& out, instant now, const std::string& why);
  /// What the master told the node to wait comes before the back-off and not in its place: the
  /// random part keeps nodes that were told the same from returning together.
  void rest(instant now, duration at_least);
  /// No phase follows: a node that was refused or has heard the verdict never dials again.
  void become_gone();
  void become_over(effects& out, const std::string& reason, bool keep_link = false);
  /// Ends the outage, whatever it was: back-off, errors and what was believed of the master
  /// begin anew.
  void welcomed(effects& out, const messages::msg<messages::Welcome>& m);
  /// The dial goes on until a master of the same or a newer term answers, or the patience is over.
  void leave_older_master(effects& out, instant now, term master);
  /// Judged in this order: another job's master (no answer at all), a refusal for good (the end), a
  /// fence or a wait (a new incarnation).
  void refused(effects& out, instant now, const messages::msg<messages::Refused>& m);

  uplink_options options_;
  messages::author author_;
  random_source random_;
  phase_of<phases> phase_{phase::resting};
  incarnation which_;
  /// A Stop of this number ends all that runs here and all that was announced.
  generation last_generation_{}; ///< the newest that the agent or the master has named
  bool hello_is_stale_ = false;  ///< asking, dialling: what runs here is another thing by now
  instant next_attempt_;
  /// Both begin with an outage. The second moves on while workers train, so that a node which has
  /// just become idle has the whole of an idle node's patience.
  instant trying_since_;
  instant idle_since_;       ///< without a link, and since when nothing ran here
  instant unanswered_since_; ///< without a link, and since when nothing answers at the address
  instant welcome_until_{};  ///< greeting
  back_off redial_;
  bool was_linked_ = false;
  /// By this an incarnation that was given up differs from one that was not taken yet.
  bool welcomed_;                   ///< a master has welcomed this incarnation
  bool trains_ = false;             ///< as the agent said for the last hello
  std::optional<bool> dispensable_; ///< as the master said of the world that runs
  /// Then the network works, and this node is not the one that is cut off.
  bool master_absent_ = false;      ///< its address was reached, and it was not there
  bool reached_since_lost_ = false; ///< since the link was lost, whatever was there
  std::uint64_t outages_ = 0;
  reminder waiting_; ///< while there is no link
  /// Since the hello was written, the newest of each kind: it says all that an earlier one said.
  /// Earlier reports are in the hello, later ones go out at once.
  std::vector<messages::any_msg> unsaid_;
  /// A dial that fails in the same way every few seconds is one error, and not a line each
  /// time.
  std::string last_error_;
  // How it ended.
  /// Kept for an agent that is restarted after the end: without it the new agent would wait for a
  /// master that is gone.
  messages::any_msg verdict_;
  std::string gave_up_because_;
};

} // namespace troupe::actors
