#pragma once

#include "runtime/base/log.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/ports/worker_links.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::os {

struct worker_links_options {
  /// Training processes of this node at a time.
  std::size_t processes = 1;
  /// Hears of processes that are sent away, one line each up to a number, then none for a while.
  log::sink log = [](const std::string&, const log::event&) {};
  /// Below it `flight_record_<rank>.json` are written, in a directory for each dump; empty:
  /// nowhere.
  std::string records;
};

/// ports::worker_links over a Unix socket of packets, on the I/O thread.
///
/// Only processes of this user, or root, are let in. A process can cost no more than its share: too
/// many connections, a packet that is too large or no message, and one that does not read what it
/// is sent, end that connection and no other.
class socket_worker_links final : public ports::worker_links {
 public:
  /// `listening`: a socket that listens, of a name that processes know; it is duplicated, as a
  /// successor of this process listens at the same. `slow`: what may wait for a disk. Error: there
  /// is no descriptor left.
  static result<std::shared_ptr<socket_worker_links>>
  open(io_thread& io, io_thread& slow, int listening, worker_links_options options);
  ~socket_worker_links() override;

  void listen(ports::worker_link_events events) override;
  void send(ports::worker_link to, const messages::any_msg& m) override;
  void close(ports::worker_link link) override;
  void keep(std::uint64_t dump, std::vector<ports::flight_record> records,
            std::function<void(result<std::string>)> done) override;

 private:
  class server;
  socket_worker_links(std::shared_ptr<server> s, io_thread& io, io_thread& slow,
                      std::string records);

  std::shared_ptr<server> server_;
  io_thread& io_;
  io_thread& slow_;
  std::string records_;
};

} // namespace troupe::os
