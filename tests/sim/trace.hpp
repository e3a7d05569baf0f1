#pragma once

#include "runtime/base/fnv1a.hpp"
#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace troupe::sim {

/// What happened, one line per transition, and a digest over all of it. Two runs of one seed give
/// the same lines; where they first differ, `diff` finds it.
///
///     12.003417 n2   > master Prepared(generation = 1) (node = "n2")
///     |         |    |
///     |         |    what happened, see below
///     |         where: a node's name, "master", or "-" for the world
///     seconds of true time
///
///     >  X m      gave message m to the link with X; a Hello, to a link that is being dialled
///     <  X m      took message m, which X had sent, off the link
///     link …      a connection: proven, closed, with its number and the reason
///     run …       a training process started (g generation, r rank) or ended
///     disk …      a record became durable
///     ckpt …      a snapshot, a shard or a step: requested, written, complete, finalized
///     up, down …  a simulated process (launcher or master) started or ended
///     ! …         a fault was injected
///     others      an actor's log event: its place in the tree, then the text
///
/// Beats and bytes are not written, but they are in the digest.
class trace {
 public:
  /// Called with every line; without it only the last few are kept.
  std::function<void(const std::string&)> on_line;

  void line(instant now, const std::string& who, const std::string& what);
  /// Into the digest only.
  void mix(std::uint64_t number);

  std::uint64_t digest() const { return digest_.value(); }
  std::size_t lines() const { return count_; }
  /// The last lines, oldest first.
  const std::deque<std::string>& tail() const { return tail_; }

 private:
  static constexpr std::size_t kept = 60;

  fnv1a digest_;
  std::size_t count_ = 0;
  std::deque<std::string> tail_;
};

} // namespace troupe::sim
