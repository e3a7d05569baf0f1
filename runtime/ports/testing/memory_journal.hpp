#pragma once

#include "runtime/ports/journal_store.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ports::testing {

/// What a journal leaves on a simulated disk: outlives the stores opened on it, as a file outlives
/// processes. Used by one thread.
struct memory_disk {
  std::vector<std::string> records;
  std::uint64_t dropped = 0; ///< records that were compacted away
  bool locked = false;       ///< a store is open
  term openings;             ///< how many there have been
  /// Answers the next append and every one after it, until taken away: a full disk.
  std::optional<error> fault;
};

/// How a store calls back: as it pleases a simulation, but in order.
using deliver = std::function<void(std::function<void()> call)>;

/// The twin of a real journal in tests and simulations: same promises, no thread, no file. Like
/// that one it answers what was asked before it was destroyed.
class memory_journal final : public journal_store {
 public:
  /// `refused` while another store is open on the disk. `disk` outlives the store.
  static result<std::unique_ptr<journal_store>> open(memory_disk& disk, deliver how);
  ~memory_journal() override;

  term opened_as() const override { return opened_as_; }
  bool taken_up() const override { return term{1} < opened_as_; }
  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override;
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override;
  void compact(selection keep, std::function<void(result<void>)> done) override;

 private:
  memory_journal(memory_disk& disk, deliver how);

  memory_disk& disk_;
  term opened_as_;
  deliver deliver_;
};

} // namespace troupe::ports::testing
