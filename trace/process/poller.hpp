#pragma once

namespace troupe::trace {

/// Finds out which calls are over and measures them, until the tracer ends.
///
/// CUDA calls back only from a thread of its own that may not use CUDA, and to wait for an event
/// waits for one. So a thread asks for the oldest event of each stream, every 100 us while there
/// are any, and sleeps while there are none. Durations are the difference of two times of the
/// device, so how often it asks changes no measurement.
void run_poller();

} // namespace troupe::trace
