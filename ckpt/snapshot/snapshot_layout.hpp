#pragma once

#include "ckpt/snapshot/file_list.hpp"
#include "ckpt/snapshot/torch_file.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// What a file consists of, one part behind another. Its content is not known here, only its sizes.
struct file_part {
  /// An archive of torch.save, at a multiple of archive_layout::alignment: `head` is its pickle,
  /// and the storages are those that the pickle names. Else the bytes of the head, and right
  /// behind it those of the storages.
  bool is_archive = false;
  std::uint64_t head = 0;
  std::size_t storages = 0; ///< so many of those that follow

  bool operator==(const file_part& other) const {
    return is_archive == other.is_archive && head == other.head && storages == other.storages;
  }
};

struct file_to_lay_out {
  std::string name;
  std::size_t parts = 0; ///< so many of those that follow

  bool operator==(const file_to_lay_out& other) const {
    return name == other.name && parts == other.parts;
  }
};

/// Where everything is in a snapshot, known before any of it is copied.
class snapshot_layout {
 public:
  struct contents {
    /// None: one archive, which is the whole snapshot, without a list; or no part either, which is
    /// a list of no files.
    std::vector<file_to_lay_out> files;
    std::vector<file_part> parts;
    std::vector<std::uint64_t> storages; ///< bytes
    /// For one more file, which is given when all else is copied. 0: there is none.
    std::uint64_t last_file_room = 0;
    std::uint64_t last_file_name = 0; ///< bytes of its name, at most

    bool operator==(const contents& other) const;
  };

  /// `invalid` for names and counts that cannot be.
  static result<snapshot_layout> of(const contents& c);

  /// Of the whole snapshot, with the room for a last file.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t head_at(std::size_t part) const { return parts_[part].head; }
  std::uint64_t storage_at(std::size_t index) const { return storages_[index]; }
  /// Where a part lies in its file.
  std::uint64_t part_in_file(std::size_t part) const { return parts_[part].in_file; }
  std::uint64_t part_bytes(std::size_t part) const { return parts_[part].bytes; }
  const std::optional<file_list>& list() const { return list_; }

  /// Writes all that is neither a head nor a storage: what archives have around them, the list if
  /// no file comes later, and zeros between files.
  void write_frame(char* snapshot) const;

 private:
  struct place {
    std::uint64_t begin = 0, in_file = 0, bytes = 0, head = 0;
    std::optional<torch_file> archive;
  };
  /// Returns where it ends.
  std::uint64_t add_part(const contents& c, const file_part& part, std::uint64_t file_begin,
                         std::uint64_t at);

  std::vector<place> parts_;
  std::vector<std::uint64_t> storages_;
  std::optional<file_list> list_;
  bool open_ = false; ///< a file comes later
  std::uint64_t bytes_ = 0;
};

/// The layout of the contents that were asked for last. Laying out ten thousand storages takes
/// longer than comparing their sizes, and those of a state seldom change from save to save.
class kept_layout {
 public:
  /// As `snapshot_layout::of`. It stays until the next call.
  result<const snapshot_layout*> of(const snapshot_layout::contents& c);

 private:
  snapshot_layout::contents contents_;
  std::optional<snapshot_layout> layout_;
};

/// Adds the last file behind all others, and the list behind that; returns the snapshot's size.
/// `list` is the layout's. `overloaded` if it is larger than the room that was kept for it.
result<std::uint64_t> add_last_file(char* snapshot, std::uint64_t room, file_list list,
                                    const std::string& name, std::string_view content);

/// Fills in all checksums of a snapshot, so that each of its files is what other readers expect.
result<void> seal_snapshot(char* snapshot, std::size_t bytes);

} // namespace troupe::ckpt
