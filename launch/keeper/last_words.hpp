#pragma once

#include "launch/keeper/keeper_client.hpp"

namespace troupe::launch {

/// From now on this process, a supervisor's, tells `keeper` why it ends when the system refuses it
/// memory, a thread or descriptors. The keeper says so, once, and starts another one. A bug of ours
/// goes the way of all programs.
void say_last_words_to(keeper_client& keeper);

} // namespace troupe::launch
