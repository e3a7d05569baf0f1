#pragma once

#include <cstdint>
#include <string>

/// This process's end of its channel to the node supervisor.
///
/// A process that hangs in Python, or in C with Python's lock held, must still be heard: the
/// channel is a thread of its own, which takes no lock of Python's, handles no signals, and sleeps
/// in poll() until there is something to say. A supervisor that ends has a successor: the thread
/// dials again, ever more rarely while no one answers.
namespace troupe::worker {

struct about_process {
  std::string python, torch; ///< versions
};

/// False if there is no TROUPE_CHANNEL, if this process has no page, or if it is done already.
bool begin_channel(const about_process& self);

/// The signal on which this process tells its Python stacks, said before the channel begins.
void tells_stacks_on(std::int32_t signal);

} // namespace troupe::worker
