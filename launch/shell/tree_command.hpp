#pragma once

#include "launch/options/options.hpp"
#include "launch/shell/inquiry.hpp"
#include "runtime/ports/transport.hpp"

#include <atomic>
#include <memory>

/// `actor-shell tree`: asks the master, once or again and again, and shows what it answers.
namespace troupe::launch {

/// What the person wants meanwhile; told by signals. The flags are set before `wake` is called.
struct wishes {
  std::shared_ptr<wake_up> wake = std::make_shared<wake_up>();
  std::atomic<bool> stop{false};
  std::atomic<bool> redraw{false};
};

/// Answers the exit code. `wants` may change at any time.
int show_tree(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
              const ports::endpoint& master, wishes& wants);

} // namespace troupe::launch
