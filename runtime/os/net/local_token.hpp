#pragma once

#include "runtime/os/net/guard.hpp"

namespace troupe::os {

/// A token for one machine that nobody has to make, keep or clean up. Who listens makes it and
/// hands it out on a Unix socket in the abstract namespace, named after each address it listens on;
/// who dials asks there. Both look at the other's user first, as the kernel tells it. Nothing lies
/// in a file, and what the kernel keeps is gone with the process.
std::shared_ptr<guard> make_local_guard(boost::asio::io_context& context, log::sink log);

} // namespace troupe::os
