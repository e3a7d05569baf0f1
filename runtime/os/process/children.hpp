#pragma once

#include "runtime/base/time.hpp"
#include "runtime/os/process/spawn.hpp"
#include "runtime/ports/process.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace troupe::os {

/// The kernel's view of our children, kept on the I/O thread: every function is called there. Two
/// sorts of them: those the spawner thread cloned, which are in the table until they are reaped;
/// and *strays*, orphans of those, which the kernel hands to us because we are a subreaper. The
/// kernel lists children by thread, so the two cannot be confused, not even in the moment between
/// clone and the table. Children this process had before (exec keeps them) are neither, and are
/// left alone.
///
/// A pid stays ours until we reap it, and only this thread does: a signal can never hit a stranger
/// who got the number later.
class children : public std::enable_shared_from_this<children> {
 public:
  /// `spawner` is the kernel's id of the thread that spawns.
  children(boost::asio::io_context& context, pid_t spawner);

  /// Begins the housekeeping of strays.
  void open();

  void watch(ports::process_id process, spawned child, ports::process_host::ended on_end);
  void signal(ports::process_id process, int number);
  void sweep(std::function<void(std::size_t killed)> done);

  /// Kills and reaps all, blocking at most limits::kill_within. No callback is called afterwards.
  void close();

 private:
  struct watched {
    pid_t pid = 0;
    boost::asio::posix::stream_descriptor pidfd;
    ports::process_host::ended on_end;
  };

  void await_end(ports::process_id process);
  void end(ports::process_id process);

  std::set<pid_t> strays();
  void kill_strays();
  void await_end_of_stray(pid_t pid);
  void stray_ended(pid_t pid);
  void begin_sweep();
  void finish_sweep();

  void collect_later();
  void kill_and_reap(pid_t group, int pidfd, instant deadline);

  boost::asio::io_context& context_;
  pid_t spawner_;
  std::set<pid_t> inherited_;
  bool closed_ = false;

  std::map<ports::process_id, watched> table_;

  /// Strays that were killed and have not ended yet.
  std::map<pid_t, boost::asio::posix::stream_descriptor> ending_;
  std::vector<std::function<void(std::size_t)>>
      wanted_; ///< sweeps asked for while one is under way
  std::vector<std::function<void(std::size_t)>> current_;
  std::size_t killed_ = 0;
  std::uint64_t sweeps_ = 0;
  boost::asio::steady_timer sweep_deadline_;
  boost::asio::steady_timer collecting_;
};

} // namespace troupe::os
