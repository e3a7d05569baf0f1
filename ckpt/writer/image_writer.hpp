#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/writer/place_writer.hpp"
#include "runtime/os/memory/bell.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace troupe::ckpt {

/// The memory of a node's training processes as it is inherited, and files in directories. One
/// thread of its own does all of it.
///
/// A training process could take away the memory that is being read, and end this one with that; it
/// shares a user and a fate with it, and whoever comes after hears of all wanted images again.
class image_writer final : public checkpoint_host {
 public:
  /// The descriptors of each local rank's arena, as troupe_ckpt.h has them; they stay the
  /// caller's. `refused` if the memory cannot be mapped.
  static result<std::shared_ptr<image_writer>> open(const std::vector<std::vector<int>>& arenas,
                                                    node_name node);
  ~image_writer() override;

  void watch(std::function<void(const wanted_image&)> on_wanted) override;
  void look(std::function<void()> done) override;
  void write(const wanted_image& image, std::function<void(result<ports::receipt>)> done) override;
  void commit(const commit_order& order, std::function<void(result<std::uint64_t>)> done) override;
  void settle(const wanted_image& image, const result<void>& how) override;
  void want_newest() override;

 private:
  struct arena {
    os::shared_memory table;
    std::array<int, slot_table::slots_max> memory{};
    slots words() const { return {*reinterpret_cast<slot_table*>(table.data()), 2}; }
  };

  image_writer(std::vector<arena> arenas, std::vector<os::bell> bells, os::bell wake,
               node_name node);

  void run();
  void ask(std::function<void()> work);
  void tell_wanted();
  void tell_wanted_in(slots& words, std::size_t slot, local_rank local);
  result<ports::receipt> write_now(const wanted_image& image);
  place_writer& at(const std::string& place);

  std::vector<arena> arenas_;
  std::vector<os::bell> bells_; ///< the first hears training processes
  os::bell wake_;
  const node_name node_;

  // The thread's.
  std::function<void(const wanted_image&)> on_wanted_;
  /// Local rank, slot, and sequence of what was told.
  std::set<std::tuple<local_rank, std::size_t, std::uint64_t>> told_;
  std::map<std::string, std::unique_ptr<place_writer>> places_;

  std::mutex lock_;
  std::deque<std::function<void()>> work_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace troupe::ckpt
