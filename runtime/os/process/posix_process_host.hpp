#pragma once

#include "runtime/os/io_thread.hpp"
#include "runtime/os/process/local_services.hpp"
#include "runtime/ports/process.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::os {

class children;

/// process_host on Linux: clone with a pidfd, ends heard on the I/O thread, no signal handler, no
/// polling.
///
/// Processes are started by a thread that does nothing else, for two reasons. A process dies with
/// the *thread* that started it, so this one lives as long as the host; and opening a log file or
/// executing a program may take long on a shared file system, which must not stop the I/O thread
/// from saying that this node is alive. `start` blocks its caller until the program runs.
///
/// Makes this process a child subreaper and lets it have children (SIGCHLD is no longer ignored).
/// Ends of processes may be heard before `start` has returned. On destruction everything that still
/// runs is killed and no callback is called any more. One host per process; its I/O thread outlives
/// it, and so does the main thread (to which the kernel hands orphans).
class posix_process_host final : public ports::process_host {
 public:
  /// `refused` when this system cannot tell us our children.
  static result<std::unique_ptr<posix_process_host>> create(io_thread& io,
                                                            process_host_options options = {});
  ~posix_process_host() override;

  result<ports::started> start(const ports::process_spec& spec, ended on_end) override;
  void signal(ports::process_id process, int number) override;
  void sweep(std::function<void(std::size_t killed)> done) override;
  result<std::uint16_t> free_port(const std::string& address) override;
  std::int64_t unix_time_ms() override;
  std::optional<std::string> read_small_file(const std::string& path, std::size_t limit) override;

 private:
  posix_process_host(io_thread& io, process_host_options options);

  io_thread& io_;
  process_host_options options_;
  std::atomic<ports::process_id> last_{0};
  io_thread spawner_;
  std::shared_ptr<children> children_;
};

} // namespace troupe::os
