#pragma once

#include "messages/worker_frames.hpp"

/// What a process says when a signal is about to end it.
///
/// A process that crashes in C leaves an exit status and nothing else: which function it was in,
/// and what its other threads did, is gone with it. So a handler of SIGSEGV, SIGBUS, SIGILL,
/// SIGFPE, SIGABRT and SIGSYS tells the node supervisor, which reads all stacks from outside, and
/// waits for its answer, limits::fatal_signal_wait at most. Then the signal comes once more, as it
/// came, to what was there before: another handler (Python's faulthandler, PyTorch's own), or the
/// default, with the same exit status and the same core file.
///
/// Nothing is told where a signal is ignored, in a process that this one has forked, of a second
/// thread that is hit meanwhile (it waits as long), and while there is no connection. A handler
/// that is installed later than this one replaces it, and reaches it if it calls what was there
/// before. The handler takes no lock and allocates nothing.
namespace troupe::worker {

/// In the script's main thread, which gets a stack of its own for handlers if it has none: the
/// other one may be what has overflowed. Once.
void watch_fatal_signals(messages::fatal_signal_frame frame);

/// Where the supervisor is told; -1: there is none, and a thread that waits for one goes on.
void tell_fatal_signals_at(int socket);

/// The supervisor has said GoOn.
void fatal_signal_is_answered();

} // namespace troupe::worker
