#pragma once

#include "ckpt/arena/slots.hpp"
#include "ckpt/c/background_copy.hpp"
#include "ckpt/copy/copier.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::ckpt {

struct bytes_at {
  const char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// A training process's end of its slots: finds memory, copies, says what there is.
class process_arena {
 public:
  /// `slots`: how many images are to be kept; one more is added when all but the newest are being
  /// read, up to slot_table::slots_max.
  static result<std::unique_ptr<process_arena>> open(std::size_t slots, unsigned threads);
  ~process_arena();

  /// See troupe_ckpt.h for what these do.
  result<void> copy_on_write();
  result<void> prepare(std::uint64_t bytes, std::vector<bytes_at> storages);
  result<void> prepared();
  result<void> save(const slot_image& what, bytes_at pickle, const std::vector<bytes_at>& storages);
  result<void> saved();
  result<void> lend(std::size_t slot);
  result<void> seal(std::size_t slot);

  std::optional<std::size_t> newest() const { return slots_.newest(); }
  const slot_image& image(std::size_t slot) const { return slots_.image(slot); }
  int descriptor(std::size_t slot) const { return memory_[slot].descriptor(); }
  /// 0: not decided yet.
  std::size_t count() const { return decided_ ? slots_.count() : 0; }

 private:
  process_arena(os::shared_memory table, std::size_t slots, unsigned threads);

  result<void> decide_count(std::uint64_t bytes);
  result<std::size_t> begin();
  result<void> fit(std::size_t slot, std::uint64_t bytes);
  result<void> finish(std::size_t slot, const slot_image& image);
  void fill(std::uint64_t bytes, std::vector<bytes_at> storages);
  void stop_filling();

  os::shared_memory table_;
  std::size_t wanted_;
  slots slots_;
  bool decided_ = false;
  std::array<os::shared_memory, slot_table::slots_max> memory_;
  copier copier_;
  std::unique_ptr<background_copy> background_; ///< with copy_on_write
  result<void> saved_;                          ///< how the last copy in the background ended

  std::thread filler_;
  std::atomic<bool> stop_{false};
  result<void> filled_;
};

} // namespace troupe::ckpt
