#pragma once

#include "messages/msg.hpp"
#include "tests/sim/host.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace troupe::sim {

/// A link over which a node gives pieces to another: in order, each message a while on its way.
/// Without bytes, credit and signs of life, which tests of `sim_link` and the network are about.
class copy_link : public std::enable_shared_from_this<copy_link> {
 public:
  enum side : std::size_t { source, target };
  /// What one side hears, in its launcher's context, until it closes the link or was told that it
  /// is closed.
  struct ear {
    host_ptr at;
    std::function<void()> connected;
    std::function<void(const messages::any_msg&)> heard;
    std::function<void(const std::string& why)> closed;
  };

  copy_link(world& of, ear of_source) : world_(of) { ears_[source] = std::move(of_source); }

  /// The source has come to a node that listens.
  void accept(ear of_target);
  void say(side from, messages::any_msg m);
  /// The other side hears of it behind all that is on its way.
  void close(side from, std::string why);
  /// The launcher of that side has ended. Without power no kernel closes its sockets: the other
  /// side hears nothing until the lease is over.
  void vanish(side from, bool silently);

  const host_ptr& at(side which) const { return ears_[which].at; }
  bool is_open(side which) const { return open_[which]; }

 private:
  void tell(side to, duration after, std::function<void(const ear&)> what);

  world& world_;
  std::array<ear, 2> ears_;
  std::array<bool, 2> open_{true, true};
  std::array<instant, 2> last_{}; ///< arrival at that side
};

} // namespace troupe::sim
