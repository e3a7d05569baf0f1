#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
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
  std::uint32_t slots = 1;
  std::optional<std::uint32_t> wanted_rank;
  /// The size of the job as this node was told; 0: it was not.
  std::uint32_t nodes_min = 0;
  std::uint32_t nodes_max = 0;
  /// For people: "10.0.0.1:29400".
  std::string master;
  /// How long to try before the first welcome, and again after the link was lost.
  duration connect_within = limits::connect_within;
  duration redial_first = limits::redial_first;
  duration redial_max = limits::redial_max;
};

/// The node's way to the master: dials, says hello with the node's whole state, and again after
/// every loss, with back-off and jitter.
class uplink_core {
 public:
  enum class phase {
    resting, ///< Waits for the next attempt.
    asking,  ///< Asks the leader what to say in the hello.
    dialling,
    greeting, ///< Has a link, waits for Welcome.
    linked,
    over, ///< Gave up or was refused.
  };

  struct ask_state {};
  struct dial {
    messages::msg<messages::Hello> hello;
  };
  /// Use the link of this attempt from now on; an older one is dropped.
  struct close_link {
    std::string reason;
  };
  /// A report, for the master.
  struct say {
    messages::any_msg message;
  };
  /// A directive of the master, for the leader.
  struct deliver {
    messages::any_msg message;
  };
  /// Welcomed: who says everything once on each link says it now.
  struct linked {};
  /// The leader must end this generation's processes: the node joins anew.
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

  /// `which` is who this node is until a master gives it up; `author` follows the newest master
  /// that the node has followed.
  uplink_core(uplink_options options, messages::author author, random_source random,
              incarnation which, instant now);

  effects tick(instant now);
  effects state_known(instant now, const messages::msg<messages::NodeState>& state);
  effects state_unknown(instant now, const std::string& why);
  effects dialled(instant now, const std::optional<error>& failure);
  effects received(instant now, const messages::any_msg& m);
  effects closed(instant now, const std::string& reason);
  /// The leader reports. What the next hello will say is dropped; what happened after the hello was
  /// written, and before it was answered, is said after it.
  effects report(const messages::any_msg& m);
  /// The leader has restarted: the master must hear its state, which a hello carries; or the leader
  /// must hear again how it ended.
  effects renew(instant now);

  std::optional<instant> next_wakeup() const;
  phase current_phase() const { return phase_; }
  /// As whom the node says hello; its next uplink must go on as the same.
  incarnation which() const { return which_; }
  epoch follows() const { return author_.following(); }
  std::string in_words() const;

 private:
  void redial(effects& out, instant now, const std::string& why);
  void complain(effects& out, instant now, const std::string& why);
  void become_resting(effects& out, instant now, const std::string& why);
  void rest(instant now, duration at_least);
  void become_over(effects& out, const std::string& reason);
  void welcomed(effects& out, epoch master);
  void leave_older_master(effects& out, instant now, epoch master);
  void refused(effects& out, instant now, const messages::msg<messages::Refused>& m);

  uplink_options options_;
  messages::author author_;
  random_source random_;
  phase phase_ = phase::resting;
  incarnation which_;
  generation last_generation_{}; ///< the newest that the leader or the master has named
  bool hello_is_stale_ = false;  ///< dialling: the leader has restarted since
  instant next_attempt_;
  instant trying_since_;
  instant welcome_until_{}; ///< greeting
  duration backoff_;
  bool was_linked_ = false;
  reminder waiting_; ///< while there is no link
  /// Since the hello was written, the newest of each kind: it says all that an earlier one said.
  std::vector<messages::any_msg> unsaid_;
  std::string last_complaint_;
  // How it ended.
  messages::any_msg verdict_;
  std::string gave_up_because_;
};

} // namespace troupe::actors
