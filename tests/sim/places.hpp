#pragma once

#include "runtime/ports/testing/memory_storage.hpp"
#include "tests/sim/world.hpp"

#include <memory>
#include <string>

namespace troupe::sim {

/// A directory on a disk: what is there, and how that disk is. It outlives every process.
struct sim_place {
  ports::testing::memory_place content;
  duration operation_max = 2ms;   ///< a listing, a small file
  duration write_min{}, write_max{}; ///< a shard
  bool slow = false;              ///< a hundred times
  bool full = false;
  double fails = 0;               ///< a shard's write
};

/// The storage port over a simulated place, with the real one's promises: a file is replaced whole
/// or not at all. On a fiber every operation takes time, and others come in between; a process that
/// ends in one has done it or has not. A removal is one operation for each file.
class sim_storage final : public ports::storage {
 public:
  sim_storage(world& of, sim_place& place) : world_(of), place_(place), content_(place.content) {}

  result<ports::receipt> put(const std::string& name, ports::bytes_view bytes,
                             const std::atomic<bool>& stop) override;
  result<ports::receipt> get(const std::string& name, ports::bytes_room into,
                             const std::atomic<bool>& stop) override;
  result<std::string> get_small(const std::string& name, std::size_t limit) override;
  result<void> replace(const std::string& name, std::string_view content) override;
  result<std::vector<ports::stored_file>> list(const std::string& below) override;
  result<void> remove(const std::string& name) override;
  std::string describe() const override { return "simulated"; }

 private:
  void pass(duration least, duration most);
  template<class Done>
  auto write(duration least, duration most, Done&& done);

  world& world_;
  sim_place& place_;
  ports::testing::memory_storage content_;
};

} // namespace troupe::sim
