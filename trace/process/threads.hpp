#pragma once

namespace troupe::trace {

/// The library's two threads: `troupe-events` polls events, `troupe-metrics` writes files and
/// answers. Signals of the program never run on them. False: they could not be started.
bool begin_threads();
/// Tells them to end, and waits for `limits::end_within_ns` at most: one that is held within CUDA
/// or by a disk must not hold the process.
void end_threads();
/// Whether the poller measures nothing more.
bool poller_ended();

} // namespace troupe::trace
