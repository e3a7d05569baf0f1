#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/ports/transport.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// Serves a few texts by HTTP/1.1, for monitoring systems and kubelets that come and read them.
///
/// It is not encrypted, and every client that reaches the port may read: no text may hold a
/// secret.
/// Nothing that a client sends is looked at but its method and path, and no actor hears of it. It
/// has a thread of its own; connections, requests and their times are bounded
/// (runtime/os/metrics/limits.hpp).
class text_server {
 public:
  struct page {
    std::string path;                  ///< "/metrics"
    std::string content_type;          ///< as the header has it
    std::function<std::string()> text; ///< called on the server's thread, for each request
    /// Called on the server's thread when a client has been sent the text that was made at `made`;
    /// empty: nothing listens.
    std::function<void(instant made)> answered = nullptr;
    /// Called on the server's thread, after text(): false is the status 503 (Service Unavailable),
    /// as a probe of a kubelet reads it. Empty: always true.
    std::function<bool()> is_good = nullptr;
  };

  /// One page at least. Host "" or "*" is every address; port 0 picks one. `refused`, naming the
  /// address, if it cannot listen there.
  static result<std::unique_ptr<text_server>> open(const ports::endpoint& where,
                                                   std::vector<page> pages);
  /// Connections are closed as they are.
  ~text_server();

  ports::endpoint where() const;

 private:
  class acceptor;
  class connection;
  text_server(std::unique_ptr<io_thread> io, std::shared_ptr<acceptor> accepts,
              ports::endpoint where);

  std::unique_ptr<io_thread> io_;
  std::shared_ptr<acceptor> acceptor_;
  ports::endpoint where_;
};

} // namespace troupe::os
