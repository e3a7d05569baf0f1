#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <string>

/// The token of a user's jobs where none is given: one file, which `--new-token` makes.
namespace troupe::launch {

/// TROUPE_TOKEN_FILE, else troupe/token below XDG_CONFIG_HOME or ~/.config; empty if no variable
/// says where the user's files are.
std::string default_token_file(const machine_facts& machine);

/// Makes that file, with a new token, for this user only; answers what to do with it. An existing
/// one stays: `refused`.
result<std::string> make_default_token(const machine_facts& machine);

/// Takes the file, if there is one, for whatever meets beyond this machine and was given neither
/// token nor certificates.
void take_default_token(common_options& o, const ports::endpoint& master,
                        const machine_facts& machine);

} // namespace troupe::launch
