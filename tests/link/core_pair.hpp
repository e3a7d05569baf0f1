#pragma once

#include "runtime/link/link_core.hpp"
#include "tests/link/samples.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// The smallest possible shell around a link_core: keeps what it delivers and what it writes.
class core_end {
 public:
  core_end(link::link_core core, instant now,
           std::optional<std::vector<std::string>> peer_names = {})
      : core_(std::move(core)) {
    core_.ready(now, std::move(peer_names));
    act(now);
  }

  link::link_core& core() { return core_; }

  /// Does what the core asks for; a write counts as done at once unless the end is stalled.
  void act(instant now) {
    for (bool again = true; again;) {
      auto todo = core_.react(now);
      read = todo.read;
      wake_at = todo.wake_at;
      if (todo.proven)
        proven = true;
      if (todo.hello)
        hello = todo.hello;
      if (todo.half_close)
        half_closed = true;
      for (auto& m : todo.messages)
        delivered.push_back(number_of(m));
      if (todo.closed) {
        closed.push_back(*todo.closed);
        how = todo.how;
      }
      for (const auto& f : todo.write)
        link::append(out, f);
      again = !todo.write.empty() && !stalled;
      if (again)
        core_.written(now);
    }
  }

  /// Hands over `raw` if reading is not paused.
  void receive(instant now, const std::vector<kj::byte>& raw) {
    core_.received(now, view_of(raw));
    act(now);
  }

  void tick(instant now) {
    core_.tick(now);
    act(now);
  }

  void open(instant now) {
    core_.opened(now);
    act(now);
  }

  result<void> send(instant now, messages::any_msg m) {
    auto sent = core_.send(now, std::move(m));
    act(now);
    return sent;
  }

  std::vector<kj::byte> take_output() { return std::exchange(out, {}); }

  bool stalled = false;
  bool read = false;
  bool proven = false;
  bool half_closed = false;
  instant wake_at = instant::max();
  messages::msg<messages::Hello> hello;
  std::vector<std::uint64_t> delivered;
  std::vector<error> closed; ///< may never have two
  ports::link_end how = ports::link_end::closed;
  std::vector<kj::byte> out;

 private:
  link::link_core core_;
};

} // namespace troupe::testing
