#pragma once

#include "runtime/ports/transport.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/sim_link.hpp"
#include "tests/sim/wire.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sim {

/// All connections of a simulation, and what goes wrong between hosts. Hosts are named; a port
/// belongs to a name.
class network {
 public:
  explicit network(world& of, const link::options& links = {}) : world_(of), link_options_(links) {}

  /// The transport of one process; its links and listeners go with it.
  std::shared_ptr<ports::transport> transport_of(const host_ptr& h);

  /// How it is between all hosts, but for those that have their own.
  weather& everywhere() { return everywhere_; }
  /// How it is on the way to and from this host from now on. Connections keep what they began with,
  /// so change it in place.
  weather& around(const std::string& host);

  /// Nothing gets from one to the other until `release`. It is not lost but held, as TCP does by
  /// repeating.
  void hold(const std::string& from, const std::string& to);
  void release(const std::string& from, const std::string& to);
  /// The best of weathers everywhere, and nothing is held.
  void calm();

  /// Breaks every connection of the host; what is in flight is cut somewhere.
  void break_links(const std::string& host);
  /// Dialling this host is refused until `when`, as if no process listened.
  void refuse_dials(const std::string& host, instant until);

  /// From now on this host finds `target` at another host, as after a change of DNS.
  void resolve(const std::string& from, const std::string& target, const std::string& to);

  /// The process has ended: its connections are closed by its kernel, or are just gone.
  void host_ended(const host_ptr& h, bool silently);
  /// The machine runs again after a power cut.
  void machine_is_back(const std::string& host);

  /// A stranger dials and says these bytes, and then nothing.
  void stranger(const std::string& target, std::uint16_t port, std::vector<kj::byte> says);

 private:
  friend class sim_transport;
  friend class sim_listener;

  /// A listening place, and the callers that came but have not said their names.
  struct listener {
    host_ptr here;
    ports::transport::acceptor accept;
    std::list<std::shared_ptr<sim_link>> unproven;
    std::shared_ptr<instant> heard = std::make_shared<instant>();
    bool open = true;
  };
  using listener_ptr = std::shared_ptr<listener>;
  struct dial_attempt;

  result<listener_ptr> open_listener(const host_ptr& h, ports::endpoint& where,
                                     ports::transport::acceptor accept);
  void close_listener(const host_ptr& h, const ports::endpoint& where, const listener_ptr& d);
  void dial(const host_ptr& h, const ports::endpoint& where, messages::msg<messages::Hello> hello,
            ports::transport::dialled done);
  void knock(const std::shared_ptr<dial_attempt>& attempt);
  void connect(const std::shared_ptr<dial_attempt>& attempt, const listener_ptr& to);
  void meet(const listener_ptr& at, const std::string& from, std::uint64_t connection, wire_ptr out,
            wire_ptr in);
  std::pair<wire_ptr, wire_ptr> lay_wires(const std::string& one, const std::string& other);
  bool held(const std::string& from, const std::string& to) const;
  void remember(const std::shared_ptr<sim_link>& end);

  world& world_;
  const link::options link_options_;
  weather everywhere_;
  std::map<std::string, weather> around_;
  std::set<std::pair<std::string, std::string>> held_;
  std::map<std::pair<std::string, std::string>, std::vector<std::weak_ptr<wire>>> wires_;
  std::map<std::string, std::vector<std::weak_ptr<sim_link>>> links_; ///< by host
  std::map<ports::endpoint, listener_ptr> listeners_;
  std::map<std::string, instant> refusing_until_;
  std::map<std::pair<std::string, std::string>, std::string> resolved_; ///< by dialler and name
  std::set<std::string> dark_;                                          ///< machines without power
  std::uint64_t connections_ = 0;
  std::uint16_t next_port_ = 29'500;
};

} // namespace troupe::sim
