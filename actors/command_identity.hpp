#pragma once

#include <cstdint>
#include <string>

namespace troupe::actors {

/// What a node runs, so that two jobs which meet at one address by accident do not become one
/// world. Fields as in Hello.Command (messages/membership.capnp).
struct command_identity {
  std::string text;
  std::uint64_t script = 0;
  std::uint64_t arguments = 0;
};

} // namespace troupe::actors
