#pragma once

#include "runtime/ports/transport.hpp"

#include <string>
#include <vector>

namespace troupe::launch {

/// A word as a shell takes it: quoted if it must be.
std::string shell_word(const std::string& word);

/// What another node types to be of the same job as a launcher that was given `arguments`: the
/// same, without what is that launcher's own (its rank, name, address and files), and with the
/// master's endpoint if the arguments do not say it.
std::string join_command(const std::vector<std::string>& arguments, const ports::endpoint& master);

} // namespace troupe::launch
