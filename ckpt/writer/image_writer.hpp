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

/// The real checkpoint_host: reads images in the memory of a node's training processes and writes
/// them to files in directories. One thread of its own does all of it.
///
/// Without it a training process would have to wait for the disk, and a process that has died could
/// not have its last image written. The memory is inherited from the keeper, so an image can be
/// found and written whatever became of the process that made it.
///
/// A training process could take away the memory that is being read, and end this one with that; it
/// shares a user and a fate with it, and a successor hears of all wanted images again.
class image_writer final : public checkpoint_host {
 public:
  /// Gives an image's pieces to their holders: image_giver::give, or a refusal.
  using giver = std::function<void(const image_to_copy&, ports::bytes_view,
                                   std::function<void(result<void>)>)>;

  /// The descriptors of each local rank's arena, as troupe_ckpt.h has them; they stay the
  /// caller's. `refused` if the memory cannot be mapped. Without `give` copies are refused. What it
  /// was asked for and has not ended when this goes, it must not call back for.
  static result<std::shared_ptr<image_writer>> open(const std::vector<std::vector<int>>& arenas,
                                                    node_name node, giver give = {});
  ~image_writer() override;

  void watch(std::function<void(const wanted_image&)> on_wanted) override;
  void watch_copies(std::function<void(const image_to_copy&)> on_wanted) override;
  void look(std::function<void()> done) override;
  void write(const wanted_image& image, std::function<void(result<ports::receipt>)> done) override;
  void commit(const commit_order& order, std::function<void(result<std::uint64_t>)> done) override;
  void settle(const wanted_image& image, const result<void>& how) override;
  void copy(const image_to_copy& image, std::function<void(result<void>)> done) override;
  void settle_copy(const image_to_copy& image, const result<void>& how) override;
  void want_newest() override;

 private:
  struct arena {
    os::shared_memory table;
    std::array<int, slot_table::slots_max> memory{};
    slots words() const { return {*reinterpret_cast<slot_table*>(table.data()), 2}; }
  };

  using image_id = std::tuple<local_rank, std::size_t, std::uint64_t>;
  static image_id id_of(const image_here& image) {
    return {image.local, image.slot, image.sequence};
  }

  image_writer(std::vector<arena> arenas, std::vector<os::bell> bells, os::bell wake,
               node_name node, giver give);

  void run();
  void ask(std::function<void()> work);
  void tell_wanted();
  void tell_wanted_in(slots& words, std::size_t slot, local_rank local);
  void tell_copy_wanted_in(slots& words, std::size_t slot, local_rank local);
  /// Its memory, sealed. Precondition: its slot is held.
  result<os::shared_memory> mapped(const image_here& image);
  result<ports::receipt> write_now(const wanted_image& image);
  void copy_now(const image_to_copy& image);
  void copied(const image_to_copy& image, const result<void>& how);
  place_writer& at(const std::string& place);

  std::vector<arena> arenas_;
  std::vector<os::bell> bells_; ///< the first hears training processes
  os::bell wake_;
  const node_name node_;
  const giver give_;

  // The thread's.
  std::function<void(const wanted_image&)> on_wanted_;
  std::function<void(const image_to_copy&)> on_copy_wanted_;
  /// What was told.
  std::set<image_id> told_, told_copies_;
  /// Being copied: its memory, and its waiters, a saver that crashed among them.
  struct copying {
    os::shared_memory memory;
    std::vector<std::function<void(result<void>)>> done;
  };
  std::map<image_id, copying> copies_;
  std::map<std::string, std::unique_ptr<place_writer>> places_;

  std::mutex lock_;
  std::deque<std::function<void()>> work_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace troupe::ckpt
