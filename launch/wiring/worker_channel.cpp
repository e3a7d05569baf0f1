#include "launch/wiring/worker_channel.hpp"

#include <utility>

namespace troupe::launch {

result<std::shared_ptr<ports::worker_links>> listen_to_workers(os::io_thread& io,
                                                               os::io_thread& slow,
                                                               const worker_socket& at,
                                                               os::worker_links_options options) {
  if (at.descriptor() >= 0)
    return os::socket_worker_links::open(io, slow, at.descriptor(), std::move(options));
  options.log("node_supervisor", {log::level::warning,
                                  "no_channel",
                                  "workers cannot reach their node supervisor, since a socket for "
                                  "them cannot be made: " +
                                      at.why_not(),
                                  {}});
  return std::shared_ptr<ports::worker_links>(std::make_shared<ports::no_worker_links>());
}

} // namespace troupe::launch
