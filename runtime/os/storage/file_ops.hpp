#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

struct directory_entry {
  enum class kind_of : std::uint8_t { file, directory, other };
  std::string name;
  kind_of kind = kind_of::other;
};

/// A write that has ended: which, and what the kernel said.
struct written {
  unsigned tag = 0;        ///< as submitted, or write_queue::none
  std::int64_t answer = 0; ///< bytes, or -errno
};

/// Several writes under way at once.
class write_queue {
 public:
  virtual ~write_queue() = default;
  /// The queue itself has failed: it must not be used again.
  static constexpr unsigned none = ~0U;
  /// 0 or -errno, after which the queue must not be used again. No more than the queue's depth may
  /// be under way; memory and file must stay until it has ended.
  virtual int submit(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
                     unsigned tag) = 0;
  /// The next that has ended; only while one is under way.
  virtual written wait() = 0;
};

/// The system calls beneath a storage, and no decisions: what a test replaces to see a disk fail.
/// Named like them; a failure is -errno.
class file_ops {
 public:
  virtual ~file_ops() = default;

  virtual int open(const std::string& path, int flags) = 0;
  virtual void close(int file) = 0;
  virtual std::int64_t pwrite(int file, const std::byte* from, std::size_t bytes,
                              std::uint64_t at) = 0;
  virtual std::int64_t pread(int file, std::byte* into, std::size_t bytes, std::uint64_t at) = 0;
  /// The size of an open regular file; -EISDIR or -ENXIO for another. To read a FIFO or a device
  /// may take for ever.
  virtual std::int64_t size(int file) = 0;
  /// Size of a file that is not open; for a symbolic link, of what it leads to.
  virtual std::int64_t size_of(const std::string& path) = 0;
  virtual int fallocate(int file, std::uint64_t bytes) = 0;
  virtual int ftruncate(int file, std::uint64_t bytes) = 0;
  virtual int fsync(int file) = 0;
  /// An exclusive lock that ends with the last descriptor of this opening; never waits.
  virtual int flock(int file) = 0;
  /// How many names an open file has.
  virtual int links(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& path) = 0;
  /// Of the name itself, and not of what it leads to; false for what cannot be looked at.
  virtual bool is_link(const std::string& path) = 0;
  virtual int mkdir(const std::string& path) = 0;
  virtual int rmdir(const std::string& path) = 0;
  /// Without `.` and `..`. Symbolic links are what they lead to, those to directories `other`.
  virtual int entries(const std::string& path, std::vector<directory_entry>& into) = 0;
  /// What may still be written below a directory; all there is if that is unknown.
  virtual std::uint64_t free_bytes(const std::string& directory) = 0;
  /// A queue where the kernel has one; nothing, and the reason in words, where it refuses.
  virtual std::unique_ptr<write_queue> queue(unsigned depth, std::string& why_not) = 0;
};

/// The kernel's own.
std::unique_ptr<file_ops> real_file_ops();

} // namespace troupe::os
