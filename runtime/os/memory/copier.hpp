#pragma once

#include "ckpt/copy/blocks.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::ckpt {

/// Copies many pieces as fast as memory allows: threads that wait for the next copy, each taking
/// the next few MiB until nothing is left. Large pieces, and of a large copy all but the smallest,
/// go past the caches, which saves reading what is about to be overwritten and leaves the caches
/// to the threads that compute.
class copier {
 public:
  /// `threads` in all, the caller's among them. 0: as many as this process may run on, at most
  /// `threads_max`.
  explicit copier(unsigned threads = 0);
  ~copier();
  copier(const copier&) = delete;
  copier& operator=(const copier&) = delete;

  static constexpr unsigned threads_max = 8;
  unsigned threads() const { return static_cast<unsigned>(others_.size()) + 1; }

  /// Returns when all is copied. Pieces do not overlap. One caller at a time.
  void run(const std::vector<piece>& pieces);

 private:
  void wait_for_work();
  void work();

  const std::vector<piece>* pieces_ = nullptr;
  std::vector<std::uint64_t> begins_; ///< of each piece, if all lay behind one another
  std::uint64_t total_ = 0;
  std::uint64_t stream_from_ = 0; ///< bytes of a piece
  std::atomic<std::uint64_t> next_{0};

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::uint64_t round_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> others_;
};

} // namespace troupe::ckpt
