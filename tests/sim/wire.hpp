#pragma once

#include "runtime/link/frame.hpp"
#include "tests/sim/world.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::sim {

/// What the network does to the bytes on their way. Of TCP only "in order or not at all" is kept,
/// and by chance not even that.
struct weather {
  duration delay_min = 50us;
  duration delay_max = 300us;
  std::size_t bytes_per_ms = 0; ///< of a slow reader or line; 0: no limit
  double frame_lost = 0;
  double frame_repeated = 0;
  double frame_overtaken = 0; ///< by the one behind it
  double chunk_repeated = 0;
  double chunk_overtaken = 0;
};

/// One direction of a connection: bytes in flight, and those that have arrived and were not read.
class wire : public std::enable_shared_from_this<wire> {
 public:
  /// How the stream ends for its reader.
  enum class tail { none, closed, reset };

  /// `held` says whether this direction is cut off just now.
  wire(world& of, const weather& w, std::function<bool()> held);

  /// From the sender. Frames fall apart into chunks at random places.
  void push(const std::vector<link::out_frame>& frames);
  void push_bytes(std::vector<kj::byte> raw);
  /// Nothing follows; told to the reader behind all that is in flight.
  void finish(tail how);
  /// The connection breaks: of what is in flight, a part of random length still arrives.
  void cut();
  /// The reader has gone for good: what arrives is answered with a reset, or not at all if its
  /// machine is gone as well.
  void refuse(bool silently);
  /// The machine is up again and knows nothing of this connection.
  void answer_again() { silent_ = false; }
  /// A partition has ended.
  void release();

  /// Bytes that the sender got rid of and the reader has not taken.
  std::size_t outstanding() const { return outstanding_; }

  // To the reader.
  std::vector<kj::byte> take(std::size_t most);
  bool has_bytes() const { return !arrived_.empty(); }
  /// What ends the stream, once everything before has been taken.
  tail ended() const { return arrived_.empty() ? tail_arrived_ : tail::none; }

  /// Something has arrived. Called from the world.
  std::function<void()> on_arrival;
  /// The reader has taken something.
  std::function<void()> on_room;
  /// The other direction of the same connection.
  std::weak_ptr<wire> back;

 private:
  struct chunk {
    instant arrives;
    std::vector<kj::byte> bytes;
    tail end = tail::none;
  };

  void fly(chunk c);
  void arm();
  void land();

  world& world_;
  const weather& weather_;
  const std::function<bool()> held_;
  std::deque<chunk> flight_;
  std::deque<kj::byte> arrived_;
  std::size_t outstanding_ = 0;
  instant last_arrival_{};
  tail tail_arrived_ = tail::none;
  bool finished_ = false;
  bool refuses_ = false;
  bool silent_ = false;
  bool armed_ = false;
};

using wire_ptr = std::shared_ptr<wire>;

} // namespace troupe::sim
