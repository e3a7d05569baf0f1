#pragma once

#include "runtime/link/link_core.hpp"
#include "runtime/ports/transport.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/wire.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::sim {

/// One end of a simulated connection: a real link_core, with wires where a socket would be. Does
/// what the core asks for and decides nothing, as the shell of the real transport does.
class sim_link : public std::enable_shared_from_this<sim_link> {
 public:
  struct outcome {
    std::function<void(std::shared_ptr<sim_link>, messages::msg<messages::Hello>)> on_proven;
    std::function<void(error)> on_failed;
  };
  struct place {
    world* of;
    host_ptr here;
    std::string there; ///< name of the host at the other end
    std::uint64_t connection;
    std::shared_ptr<instant> heard; ///< when anybody was at this listening place; null at a dialler
  };

  sim_link(place at, link::link_core core, wire_ptr out, wire_ptr in);

  /// In its host's context, once.
  void start(outcome told);

  // What owners call, in the host's context.
  void open(ports::connection_events events);
  result<void> send(messages::any_msg m);
  void taken();
  void close(error why);
  void abort(error why);

  const std::string& peer() const { return at_.there; }
  const host_ptr& where() const { return at_.here; }
  bool ended() const { return ended_.has_value(); }

  /// The socket is gone with its process. The kernel tells the peer, unless the machine is gone as
  /// well.
  void vanish(bool silently);

 private:
  template<class Event>
  void step(Event&& event);
  void kick();
  void act(link::effects todo);
  void read();
  void wrote();
  void wake_at(instant when);
  void finish(ports::link_end how, error why);
  void tell_end(ports::link_end how);
  std::string label() const;

  place at_;
  link::link_core core_;
  wire_ptr out_;
  wire_ptr in_;
  outcome told_;
  ports::connection_events events_;
  bool kicked_ = false;
  bool reading_ = false; ///< the core welcomes bytes
  bool writing_ = false; ///< a batch waits for room on the wire
  bool opened_ = false;
  bool vanished_ = false;
  bool end_told_ = false;
  std::size_t outstanding_ = 0;
  std::optional<instant> wake_planned_;
  std::optional<ports::link_ending> ended_;
};

/// What owners hold: closes the link when dropped.
class sim_connection final : public ports::connection {
 public:
  explicit sim_connection(std::shared_ptr<sim_link> link) : link_(std::move(link)) {}
  ~sim_connection() override { link_->close({errc::closed, "its owner let go of the link"}); }

  void open(ports::connection_events events) override { link_->open(std::move(events)); }
  result<void> send(messages::any_msg m) override { return link_->send(std::move(m)); }
  void taken() override { link_->taken(); }
  void close(std::string reason) override { link_->close({errc::closed, std::move(reason)}); }
  std::string peer() const override { return link_->peer(); }

 private:
  std::shared_ptr<sim_link> link_;
};

} // namespace troupe::sim
