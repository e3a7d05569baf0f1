#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include <sys/types.h>

namespace troupe::launch {

/// What keeper and supervisor say to each other. Both are the same program's image (a supervisor is
/// forked, not exec'd), so this is no protocol that could meet another version.
struct packet {
  enum class kind : std::uint32_t {
    // From the supervisor.
    starting,    ///< A process is about to be cloned: no unknown one is a stray for now.
    started,     ///< `process`, `pid`, `label`. Every `starting` is followed by this or the next.
    not_started, ///< Nothing is left of it but what has to be reaped.
    adopted,     ///< `process` is this supervisor's now.
    signal,      ///< `number` to the group of `process`.
    sweep,       ///< Answered by `swept`.
    open_store,  ///< With a socket for the answer; `process`, `label` and `text` as in store_order.
    keep,        ///< With a file: what a successor finds at place `number`.
    failed,      ///< `text` says what keeps the supervisor from going on; it ends now.
    over,        ///< `number` is the launcher's exit code; the supervisor ends now.
    // From the keeper. First of all one `present` for each process that survived.
    present,     ///< `process`, `pid`, `label`, `is_store`.
    presented,   ///< That was all; `number` counts the supervisors before this one.
    ended,       ///< `process` has ended with `number`, by a signal if `signalled`.
    swept,       ///< `number` strays were killed.
    user_signal, ///< The launcher received `number`.
  };

  kind what{};
  std::int32_t number = 0;
  std::uint64_t process = 0;
  std::uint64_t label = 0;
  std::int32_t pid = 0;
  bool signalled = false;
  bool is_store = false;
  char text[256] = {};
};

/// One that says no more than this.
packet about(packet::kind what, std::uint64_t process = 0, std::int32_t number = 0);

/// Both ends of a conversation; packets stay whole and in order. Two empty ones, with errno, when
/// the system has no more.
std::pair<os::unique_fd, os::unique_fd> packet_pair();

/// Sends one, with a file descriptor if `file` is not negative. Waits for room unless told not to;
/// false if there is none, or if the other end is closed.
bool send_packet(int socket, const packet& p, int file = -1, bool wait = true);

struct received_packet {
  packet what;
  os::unique_fd file;
};

/// The next one; nothing at the end, or if none is there and it should not wait.
std::optional<received_packet> receive_packet(int socket, bool wait);

} // namespace troupe::launch
