#pragma once

#include "runtime/os/storage/block_writer.hpp"
#include "runtime/os/storage/file_ops.hpp"
#include "runtime/os/storage/part_file.hpp"
#include "runtime/ports/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::os {

struct posix_storage_options {
  /// How much is written at a time, and how many such blocks at once: what bench/persist found
  /// fastest, and memory's checksum is in no block's way.
  std::size_t block = 4u << 20;
  unsigned depth = 8;
  /// Smaller files go through the page cache.
  std::size_t direct_from = 1u << 20;
  /// Off for a test or a file system that promises more than it keeps.
  bool direct = true;
  bool ring = true;
  /// From which the names of unfinished files are counted; 0 draws it.
  std::uint64_t first_part = 0;
};

/// Files in a directory, on this machine or shared. A file is written under a name of its own,
/// synced, renamed, and its directory synced. Large ones go past the page cache, several blocks at
/// once, by io_uring; where the kernel or the file system refuses that, plainly: found out once and
/// told by describe().
class posix_storage final : public ports::storage {
 public:
  /// Nothing is touched before the first call; then `root` is made if it is not there. `files` is
  /// the kernel's unless a test brings its own.
  explicit posix_storage(std::string root, posix_storage_options how = {},
                         std::unique_ptr<file_ops> files = real_file_ops());
  ~posix_storage() override;

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
  std::string describe() const override;

 private:
  std::string path_of(const std::string& name) const;

  result<void> settle(const std::string& directory);
  void leave_no_empty_directory(const std::string& directory);
  result<void> settle_once(const std::string& directory);
  bool is_others(const std::string& directory);
  result<void> make_root(const std::string& path, std::size_t depth);
  result<void> sync_directory(const std::string& path);

  result<ports::receipt> write(const std::string& path, ports::bytes_view bytes,
                               const std::atomic<bool>& stop, const ports::may_replace& may);
  result<ports::receipt> write_part(part_file& part, const std::string& path,
                                    ports::bytes_view bytes, bool direct,
                                    const std::atomic<bool>& stop, bool& direct_refused);
  /// The written part takes its place.
  result<ports::receipt> publish(part_file& part, const std::string& path,
                                 const ports::receipt& written, const ports::may_replace& may);
  int create_part(part_file& part, const std::string& directory, bool& direct);
  write_queue& queue_for(bool direct);
  bool directly(ports::bytes_view bytes) const;
  void give_direct_up(std::string why);

  result<void> list_into(const std::string& name, std::size_t depth,
                         std::vector<ports::stored_file>& found, bool& one_has_gone);
  result<void> list_file(const std::string& name, std::vector<ports::stored_file>& found);
  result<void> remove_tree(const std::string& path, std::size_t depth);

  std::string root_;
  posix_storage_options how_;
  std::unique_ptr<file_ops> files_;
  std::uint64_t next_part_;
  /// Directories that are there, durably, and were swept.
  std::set<std::string> settled_;
  std::unique_ptr<write_queue> ring_;
  plain_queue plain_;
  bool ring_refused_ = false;
  std::string plain_because_; ///< why there is no io_uring or no direct write; empty if there is
};

} // namespace troupe::os
