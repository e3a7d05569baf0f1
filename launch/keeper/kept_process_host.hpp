#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/process/local_services.hpp"
#include "runtime/ports/process.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::launch {

/// process_host of a supervisor in a keeper's care. A process is cloned here and is the keeper's
/// child from its first moment: it survives us and dies with the keeper. Ends are told by the
/// keeper, signals go through it: it alone knows whether a pid is still the process's.
///
/// Processes are started on `slow`, a thread for what may take long: opening a log file or
/// executing a program on a shared file system. Destroying the host ends nothing; no callback is
/// called afterwards.
class kept_process_host final : public ports::process_host {
 public:
  kept_process_host(os::io_thread& io, os::io_thread& slow, keeper_client& keeper,
                    os::process_host_options options = {});

  ~kept_process_host() override;

  void aside(std::function<void()> job) override;
  result<ports::started> start(const ports::process_spec& spec, ended on_end) override;
  std::vector<ports::survivor> survivors() override;
  void adopt(ports::process_id survivor, ended on_end) override;
  void signal(ports::process_id process, int number) override;
  void signal_alone(ports::process_id process, int number) override;
  bool takes_signal(std::int32_t pid, int number) override;
  void sweep(const ports::sweep_order& order, std::function<void(const ports::left_behind&)> waits,
             std::function<void(const ports::swept&)> done) override;
  result<std::uint16_t> free_port(const std::string& address) override;
  std::int64_t unix_time_ms() override;
  std::optional<std::string> read_small_file(const std::string& path, std::size_t limit) override;
  std::optional<std::string> read_end_of_file(const std::string& path, std::size_t limit) override;

 private:
  /// What the keeper's messages reach; they may outlive us.
  struct ends;

  result<ports::started> start_here(const ports::process_spec& spec, ended on_end);
  void announce_start();
  void prepare_group();
  int group();
  void tell_group() const;
  void expect(ports::process_id process, ended on_end);

  os::io_thread& io_;
  os::io_thread& slow_;
  keeper_client& keeper_;
  os::process_host_options options_;
  std::shared_ptr<ends> ends_;
  // Of the slow thread: where processes live that are started before the next sweep.
  os::unique_fd group_;
  bool group_tried_ = false;
  bool grouped_;
};

} // namespace troupe::launch
