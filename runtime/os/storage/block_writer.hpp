#pragma once

#include "runtime/os/storage/file_ops.hpp"
#include "runtime/ports/storage.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::os {

/// What direct writes are aligned to, in memory and in the file: the largest that disks ask for.
inline constexpr std::size_t direct_alignment = 4'096;

/// Whether memory can be written past the page cache as it is.
inline bool is_aligned(ports::bytes_view bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data) % direct_alignment == 0;
}

/// A queue for where the kernel has none: what is submitted is written at once.
class plain_queue final : public write_queue {
 public:
  explicit plain_queue(file_ops& files) : files_(files) {}
  int submit(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
             unsigned tag) override;
  written wait() override;

 private:
  file_ops& files_;
  std::vector<written> ended_;
};

struct write_outcome {
  int wrong = 0; ///< an errno
  bool stopped = false;
  bool queue_failed = false; ///< it must not be used again
  std::uint32_t crc32 = 0;
};

/// Writes memory to a file from its beginning, in blocks, several at a time. While the disk takes
/// one, the checksum of the next is taken.
class block_writer {
 public:
  struct plan {
    std::size_t block = 0; ///< a multiple of direct_alignment
    unsigned depth = 0;
    /// Past the page cache: the file is a multiple of direct_alignment long after that and has to
    /// be cut to its size.
    bool direct = false;
  };

  block_writer(write_queue& queue, plan how);

  /// When it returns nothing is under way any more.
  write_outcome write(int file, ports::bytes_view bytes, const std::atomic<bool>& stop);

 private:
  struct piece {
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    std::uint64_t at = 0;
    unsigned fruitless = 0; ///< how often in a row nothing of it was written
  };

  piece next_piece(ports::bytes_view bytes);
  void start(int file, piece p);
  void submit(int file, unsigned tag);
  void take_one(int file);

  write_queue& queue_;
  plan how_;
  std::vector<piece> under_way_; ///< by tag
  std::vector<unsigned> free_;   ///< tags
  std::uint64_t next_ = 0;       ///< where the next piece begins
  write_outcome outcome_;
  alignas(direct_alignment) std::array<std::byte, direct_alignment> tail_{};
};

} // namespace troupe::os
