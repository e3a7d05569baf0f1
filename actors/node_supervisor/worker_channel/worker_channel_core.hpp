#pragma once

#include "actors/node_supervisor/worker_channel/fatal_signals_core.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/worker_links.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// The node supervisor's end of the conversation `worker`.
///
/// A process is known by the kernel's word: it is one of those that the agent watches, or in the
/// session of one. While the agent has none (they are being started, or this supervisor is new), a
/// process that dials is waited with for a while; it may be one of theirs. Nothing that a process
/// says is taken for granted: with what is wrong it harms only what is told of itself.
class worker_channel_core {
 public:
  using link = ports::worker_link;

  struct send {
    link to = 0;
    messages::any_msg message;
  };
  struct close {
    link which = 0;
  };
  /// Answered by kept().
  struct keep {
    std::uint64_t dump = 0;
    std::vector<ports::flight_record> records;
  };
  struct note {
    log::event event;
  };
  /// Answered by crashes_read().
  using read_stacks = fatal_signals_core::read_stacks;
  using effect = std::variant<send, close, keep, note, read_stacks>;
  using effects = std::vector<effect>;

  /// `now`: when this actor began. What was before, its predecessor has told.
  worker_channel_core(messages::author author, instant now);

  // From the host.
  effects arrived(instant now, const ports::worker_peer& peer);
  effects said(instant now, link from, const messages::any_msg& m);
  effects closed(instant now, link which);
  effects kept(const result<std::string>& directory);
  effects crashes_read(std::uint64_t number, const std::vector<diag::crash_report>& reports);

  // From the agent.
  effects watched(instant now, const messages::msg<messages::Watched>& m);
  /// The same as its answer to this actor, which may have begun long after these processes.
  effects found(instant now, const messages::msg<messages::Watched>& m);
  // From the master's diagnosis, through the uplink.
  effects stacks_wanted(instant now, const messages::msg<messages::StacksWanted>& m);

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  struct peer {
    std::int32_t pid = 0;
    std::int32_t session = 0;
    /// Of the process that it belongs to, as the agent says; nothing: not known.
    std::optional<std::uint32_t> rank;
    instant since;
    /// What it has said before it was known, and what else is heard of it once it is.
    messages::msg<messages::WorkerHello> hello;
    messages::msg<messages::FirstStep> first_step;
    bool leaving = false;
  };
  /// A record that comes in pieces.
  struct coming_record {
    link from = 0;
    std::string json;
  };
  struct gathering {
    std::uint64_t dump = 0;
    std::uint64_t question = 0;
    instant until;
    std::map<std::uint32_t, coming_record> coming; ///< by rank
    std::vector<ports::flight_record> whole;
    std::size_t bytes = 0; ///< of all of them
  };

  /// Those that crash, as effects of this core.
  void add(effects& out, fatal_signals_core::effects&& of_crashes);
  void take_crash(effects& out, instant now, link from, const peer& p,
                  const messages::msg<messages::FatalSignal>& m);
  void take_watched(effects& out, const messages::msg<messages::Watched>& m);
  void know_peers(effects& out, instant now);
  std::optional<std::uint32_t> rank_of(const peer& p) const;
  std::size_t links_of(std::uint32_t rank) const;
  void judge(effects& out, instant now, link which, peer& p);
  void turn_away(effects& out, instant now, link which, peer& p, const std::string& why);
  void hear(effects& out, instant now, link from, const peer& p);
  void take_first_step(effects& out, instant now, const peer& p, instant at, duration told);
  void take_piece(effects& out, link from, const peer& p,
                  const messages::msg<messages::FlightRecord>& m);
  void drop_record(effects& out, std::uint32_t rank, const std::string& why);
  void end_gathering(effects& out);
  void say(effects& out, log::level severity, const char* name, std::string text) const;

  messages::author author_;
  instant began_;
  generation about_;
  std::map<std::int32_t, std::uint32_t> ranks_; ///< by pid, those that the agent watches
  std::optional<instant> failed_at_;            ///< the failure that led to this generation
  std::optional<instant> started_;              ///< nothing: before this actor
  bool first_step_told_ = false;
  /// Bounded by the host.
  std::map<link, peer> peers_;
  std::map<std::uint32_t, link> talks_; ///< by rank: where it said hello last
  std::optional<gathering> gathering_;
  std::uint64_t last_question_ = 0;
  fatal_signals_core crashes_;
  // One line for each peer that is turned away, up to a number in each period.
  instant told_since_;
  std::uint64_t turned_away_ = 0;
};

} // namespace troupe::actors
