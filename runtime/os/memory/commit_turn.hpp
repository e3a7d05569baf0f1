#pragma once

#include "runtime/base/time.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <filesystem>
#include <optional>
#include <utility>

namespace troupe::os {

/// The turn of one process, of all that share a bound of memory, to touch what it was granted.
///
/// Two launchers in one control group have a ledger each. If both see room for one more snapshot,
/// both touch it, and the kernel kills one. So where memory is short the one that touches holds a
/// lock of the folder that stands for the bound: every user can open it, nothing is left there, and
/// the kernel lets go when a process dies.
class commit_turn {
 public:
  /// Waits so long at most. Nothing: another one has it still, or the folder cannot be locked; then
  /// what each step leaves free has to do.
  static std::optional<commit_turn> wait(const std::filesystem::path& shared, duration within);
  commit_turn(commit_turn&& other) noexcept = default;
  commit_turn& operator=(commit_turn&&) = delete;
  /// Also for a child that was forked meanwhile, which has the descriptor too.
  ~commit_turn();

 private:
  explicit commit_turn(unique_fd locked) : locked_(std::move(locked)) {}
  unique_fd locked_;
};

} // namespace troupe::os
