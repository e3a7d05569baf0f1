#pragma once

#include "runtime/ports/transport.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// One link, as a test holds it: the test is the peer. The near end is a ports::connection of the
/// actors.
class fake_link {
 public:
  explicit fake_link(std::string peer) : peer_(std::move(peer)) {}

  /// The near end; dropping it ends the link.
  static ports::connection_ptr near_end(const std::shared_ptr<fake_link>& link);

  /// A message arrives; before open() it waits.
  void arrives(messages::any_msg m);
  /// The link is gone.
  void breaks(const std::string& reason = "reset by peer",
              ports::link_end how = ports::link_end::closed) {
    end({how, reason});
  }
  /// What was sent since the last call.
  std::vector<messages::any_msg> take_sent();
  /// Why it ended; nothing while it lives.
  std::optional<std::string> ended() const {
    return ended_ ? std::optional(ended_->reason) : std::nullopt;
  }
  std::size_t delivered() const { return delivered_; }
  std::size_t taken_count() const { return taken_; }

 private:
  class connection;
  void end(ports::link_ending how);
  void deliver(messages::any_msg m);

  std::string peer_;
  std::optional<ports::connection_events> owner_;
  std::deque<messages::any_msg> waiting_;
  std::vector<messages::any_msg> sent_;
  std::optional<ports::link_ending> ended_;
  std::size_t delivered_ = 0;
  std::size_t taken_ = 0;
};

using fake_link_ptr = std::shared_ptr<fake_link>;

class fake_transport final : public ports::transport {
 public:
  // The actors.
  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint& where,
                                                  acceptor accept) override;
  void dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
            dialled done) override;

  // The test.
  /// A peer proves itself and says hello. Precondition: there is a listener.
  fake_link_ptr knock(const messages::msg<messages::Hello>& hello);
  bool has_listener() const { return static_cast<bool>(*accept_); }
  /// From now on listening fails.
  void refuse_to_listen(error why) { no_listening_ = std::move(why); }

  /// Nothing, or the hello of the attempt that waits for an answer.
  std::optional<messages::msg<messages::Hello>> dialling() const;
  fake_link_ptr answer_dial();
  void refuse_dial(error why);
  std::size_t dials() const { return dials_; }

 private:
  struct attempt {
    messages::msg<messages::Hello> hello;
    dialled done;
  };
  std::shared_ptr<acceptor> accept_ = std::make_shared<acceptor>();
  std::optional<error> no_listening_;
  std::optional<attempt> attempt_;
  std::size_t dials_ = 0;
  std::size_t links_ = 0;
};

} // namespace troupe::testing
