#pragma once

#include "runtime/os/process/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::launch {

/// Where training processes dial their node supervisor. Made by the keeper, as the pages of
/// progress are: the name outlives a node supervisor, whose successor listens at the same socket,
/// and a process that dials in between waits there.
///
/// An abstract name is in no directory that a killed launcher would leave behind, and is gone with
/// the last process that has the socket.
class worker_socket {
 public:
  /// `mark`: what no other launcher of this machine has. `local_ranks` bounds how many may wait.
  worker_socket(const std::string& mark, std::uint32_t local_ranks);

  /// As TROUPE_CHANNEL has it, "@name"; empty if there is no socket.
  const std::string& name() const { return name_; }
  /// Listens, waits for nothing, and is inherited by no program. -1 if there is none.
  int descriptor() const { return socket_->get(); }
  /// Why there is no socket.
  const std::string& why_not() const { return why_not_; }

 private:
  std::string name_;
  std::string why_not_;
  std::shared_ptr<os::unique_fd> socket_;
};

} // namespace troupe::launch
