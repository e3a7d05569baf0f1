#pragma once

#include "runtime/os/net/authenticator.hpp"

namespace troupe::os {

/// A token for one machine, with no file to make, keep or clean up. The listening process makes it
/// and hands it out on a Unix socket in the abstract namespace, named after each address it listens
/// on; the dialling process asks there. Both look at the other's user first, as the kernel tells
/// it. What the kernel keeps is gone with the process.
std::shared_ptr<authenticator> make_local_authenticator(boost::asio::io_context& context,
                                                        log::sink log);

} // namespace troupe::os
