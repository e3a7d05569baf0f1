#pragma once

#include "runtime/ports/journal_store.hpp"
#include "tests/sim/host.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

/// A master's disk: what was acknowledged stays; what was not may or may not.
class sim_disk {
 public:
  explicit sim_disk(world& of) : world_(of) {}

  /// The journal of one master process.
  std::shared_ptr<ports::journal_store> store_of(const host_ptr& master);

  /// Of the writes under way when the process ended, a part of random length has reached the disk.
  void process_ended();

  /// The next master begins without a journal, under a term that is newer all the same.
  void lose();

  term openings; ///< one for each master process

  duration append_min = 100us;
  duration append_max = 3ms;
  /// Answers every append while it is set: a full disk.
  std::optional<error> fault;

  const std::vector<std::string>& records() const { return records_; }
  std::vector<messages::any_msg> all() const;

 private:
  friend class sim_journal;

  struct write {
    std::string bytes;
    std::uint64_t ticket;
  };

  void append(const host_ptr& master, messages::any_msg record,
              std::function<void(result<std::uint64_t>)> done);
  void read_all(const host_ptr& master,
                std::function<void(result<std::vector<messages::any_msg>>)> done);
  void compact(const host_ptr& master, ports::journal_store::selection keep,
               std::function<void(result<void>)> done);
  void become_durable(const write& w);

  world& world_;
  std::vector<std::string> records_;
  std::uint64_t dropped_ = 0;
  std::deque<write> under_way_;
  std::uint64_t tickets_ = 0;
  instant last_done_{};
};

} // namespace troupe::sim
