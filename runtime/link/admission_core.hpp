#pragma once

#include "runtime/base/phase_of.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::link {

/// Which of the connections that came in get a handshake next, and which are dropped.
///
/// Any host that reaches the port can open connections, faster than handshakes can be finished.
/// Served in the order of their arrival, they would keep a member from coming back in time. So each
/// connection first *waits* until its peer has said something: a dialler of this job does so at
/// once, and one that opens connections and is silent costs a descriptor and no more. Of those that
/// have spoken, addresses from which a peer has proven itself before go first; then addresses with
/// the fewest handshakes under way. Under pressure connections go first that have been silent for a
/// quarter of the grace, oldest first: a dialler's first bytes may be on their way. Then those of
/// the address that has the most.
///
/// Pure: descriptors, sockets and timers belong to the shell, which names each connection by a
/// number that grows.
class admission_core {
 public:
  using id = std::uint64_t;

  struct options {
    std::size_t waiting_max = 0;
    std::size_t proving_max = 0;
    /// A handshake that has had this long may be ended in favour of another.
    duration grace{};
    /// How long a connection waits at most.
    duration patience{};
    /// A connection that has been silent for less is not dropped for another: a dialler's first
    /// bytes may be on their way.
    duration silence{};
  };

  struct dropped {
    id which = 0;
    error why;
  };
  struct effects {
    std::vector<id> begin; ///< their handshakes begin now
    std::vector<dropped> drop;
  };

  explicit admission_core(options o) : options_(o) {}

  /// Whether a newcomer would have to take the place of one that must not be dropped: it is not
  /// accepted yet.
  bool full(instant now) const;
  /// Precondition: not full(now). `address` is its peer's, without the port.
  effects came(instant now, id which, const std::string& address);
  /// Its peer has said something, or hung up.
  effects spoke(instant now, id which);
  /// Its handshake is over.
  effects ended(instant now, id which, bool proven);
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  std::size_t waiting() const { return waiting_; }
  std::size_t proving() const { return connections_.size() - waiting_; }

 private:
  enum class phase : std::uint8_t { silent, ready, proving };
  static constexpr phase_table<phase> phases{"a connection",
                                             {
                                                 {phase::silent, "silent", {phase::ready}},
                                                 {phase::ready, "ready", {phase::proving}},
                                                 {phase::proving, "proving", {}},
                                             }};
  struct connection {
    std::string address;
    instant since{}; ///< when it came, or its handshake began
    phase_of<phases> now_in{phase::silent};
  };
  struct load {
    std::size_t waiting = 0, proving = 0;
  };
  using place = std::map<id, connection>::const_iterator;

  bool known(const connection& c) const { return known_.count(c.address) != 0; }
  std::optional<place> least_worth_waiting(instant now) const;
  std::optional<place> next_ready() const;
  std::optional<place> replaceable(instant now, const connection& by) const;
  bool has_slot(const connection& c) const;
  void drop(effects& out, place which, error why);
  void remove(place which);
  void begin_ready(effects& out, instant now);

  options options_;
  std::map<id, connection> connections_; ///< oldest first
  std::map<std::string, load> loads_;
  std::size_t waiting_ = 0;
  instant looked_at_{}; ///< when it was last tried to begin what is ready
  /// Addresses from which a peer has proven itself; bounded by limits::nodes_max.
  std::set<std::string> known_;
};

} // namespace troupe::link
