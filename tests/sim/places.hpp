#pragma once

#include "runtime/ports/testing/memory_storage.hpp"
#include "tests/sim/world.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {

/// A directory on a disk: what is there, and how that disk is. It outlives every process.
struct sim_place {
  ports::testing::memory_place content;
  duration operation_max = 2ms;      ///< a listing, a small file
  duration write_min{}, write_max{}; ///< a shard
  bool slow = false;                 ///< a hundred times
  bool full = false;
  bool broken = false;  ///< an input/output error at each operation
  double fails = 0;     ///< a shard's write
  bool refuses = false; ///< by a newer job, or by what is damaged: saves may be refused

  /// What others see already and a power cut undoes: a file's content before, newest last.
  struct unsynced {
    std::string name;
    std::optional<std::string> before;
    std::uint64_t number = 0;
    instant at;
  };
  /// What no process waits for is durable after this time, as it is in a kernel's page cache.
  static constexpr duration written_back_within = 30s;
  std::vector<unsynced> cache;
  std::uint64_t writes = 0;       ///< so far
  std::set<std::uint64_t> undone; ///< by a power cut, and their writers do not know yet

  std::uint64_t at_work = 0; ///< savers, and what they have been asked to do
  /// So often something has failed there, was cut short by its process's end, or was lost.
  std::uint64_t disturbed = 0;

  std::uint64_t troubles = 0;        ///< what fate has done to it, so far
  std::uint64_t slow_operations = 0; ///< that have begun while it was slow, and go on

  /// What is asked of it may fail, or take longer than it should.
  bool is_ill() const {
    return slow || full || broken || refuses || fails > 0 || slow_operations > 0;
  }
  /// The machine that has it loses power.
  void lose_cache(instant now);
};

/// Counts a saver's work at a place from the moment that it is asked for. Work that is dropped
/// without an end has disturbed the place.
class place_use {
 public:
  place_use(world& of, sim_place& place) : world_(of), place_(place) { ++place_.at_work; }
  ~place_use();
  place_use(const place_use&) = delete;
  place_use& operator=(const place_use&) = delete;

  void done();

 private:
  void end();

  world& world_;
  sim_place& place_;
  bool ended_ = false;
};

/// The storage port over a simulated place, with the real one's promises: a file is replaced whole
/// or not at all, and is durable when the call returns. On a fiber every operation takes time, and
/// others come in between: they see a change before its writer knows that it is durable. A process
/// that ends in an operation has done it or has not, and what it has done may not be durable. A
/// listing shows what was there all the time that it took; a removal is an operation for each file.
class sim_storage final : public ports::storage {
 public:
  sim_storage(world& of, sim_place& place) : world_(of), place_(place), content_(place.content) {}

  result<ports::receipt> put_if(const std::string& name, ports::bytes_view bytes,
                                const std::atomic<bool>& stop,
                                const ports::may_replace& may) override;
  result<ports::receipt> get(const std::string& name, ports::bytes_room into,
                             const std::atomic<bool>& stop) override;
  result<std::string> get_small(const std::string& name, std::size_t limit) override;
  result<void> replace(const std::string& name, std::string_view content) override;
  result<std::vector<ports::stored_file>> list(const std::string& below) override;
  result<std::vector<ports::stored_entry>> entries() override;
  result<void> remove(const std::string& name) override;
  std::string describe() const override { return "simulated"; }

 private:
  void pass(duration least, duration most);
  result<void> usable(const std::string& name, bool writes);
  template<class Done>
  auto apply(const std::string& name, Done&& done);
  template<class Done>
  auto apply_and_sync(const std::string& name, duration least, duration most, Done&& done);
  template<class Done>
  auto write(const std::string& name, duration least, duration most, Done&& done);

  world& world_;
  sim_place& place_;
  ports::testing::memory_storage content_;
};

} // namespace troupe::sim
