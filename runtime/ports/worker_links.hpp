#pragma once

#include "messages/msg.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// The connections of training processes to their node supervisor.
///
/// A process that dials is not yet a training process: anything of this user can. What the kernel
/// says of it comes with its arrival, and the actor decides; the bounds that need no decision (how
/// many, how large, how much for one that does not read) are kept behind this port.
namespace troupe::ports {

/// Unique within the life of the links.
using worker_link = std::uint64_t;

/// As the kernel has it (SO_PEERCRED), which no process can change.
struct worker_peer {
  worker_link link = 0;
  std::int32_t pid = 0;
  /// Every training process leads one; those that it starts are in it.
  std::int32_t session = 0;
};

/// Called from the host's thread.
struct worker_link_events {
  std::function<void(const worker_peer&)> on_arrived;
  std::function<void(worker_link, const messages::any_msg&)> on_message;
  /// Also after close().
  std::function<void(worker_link)> on_closed;
};

/// What a process said of its last collectives.
struct flight_record {
  std::uint32_t rank = 0;
  std::string json;
};

/// Thread-safe; nothing blocks.
class worker_links {
 public:
  virtual ~worker_links() = default;

  /// From now on these hear. Every link of an earlier listener ends: its process dials again, and
  /// says all that a new listener needs to know.
  virtual void listen(worker_link_events events) = 0;
  /// A link that does not exist any more is not an error.
  virtual void send(worker_link to, const messages::any_msg& m) = 0;
  virtual void close(worker_link link) = 0;

  /// Written as files; `done` gets the directory, or why there is none.
  virtual void keep(std::uint64_t dump, std::vector<flight_record> records,
                    std::function<void(result<std::string>)> done) = 0;
};

/// Where processes have no way to a supervisor.
class no_worker_links final : public worker_links {
 public:
  void listen(worker_link_events) override {}
  void send(worker_link, const messages::any_msg&) override {}
  void close(worker_link) override {}
  void keep(std::uint64_t, std::vector<flight_record>,
            std::function<void(result<std::string>)> done) override {
    done(failure(errc::unavailable, "this program writes none"));
  }
};

} // namespace troupe::ports
