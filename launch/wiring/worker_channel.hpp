#pragma once

#include "launch/worker/worker_socket.hpp"
#include "runtime/os/links/socket_worker_links.hpp"

#include <memory>

namespace troupe::launch {

/// This node's end of the channel to its training processes. Where the socket could not be made
/// they train without, and one line says so.
result<std::shared_ptr<ports::worker_links>> listen_to_workers(os::io_thread& io,
                                                               os::io_thread& slow,
                                                               const worker_socket& at,
                                                               os::worker_links_options options);

} // namespace troupe::launch
