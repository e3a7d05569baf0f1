#pragma once

#include "runtime/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The archive that `torch.save` writes and `torch.load` reads, as bytes in memory: a zip file of
/// records that are stored, not compressed, with the data of each at a multiple of 64 bytes.
/// Sources: PKWARE's APPNOTE 6.3.10 (§4.3 structure, §4.4 fields, §4.5.3 ZIP64);
/// caffe2/serialize/inline_container.cc and third_party/miniz of PyTorch 2.13 for what is its own:
/// the padding field "FB", a descriptor behind each record that is not empty (flag bit 3), and that
/// positions can be computed from sizes alone (`torch.utils.serialization.config.load.
/// calculate_storage_offsets`). The same records make the same bytes: there is no date in it.
namespace troupe::ckpt {

struct record {
  std::string name; ///< without the archive's own name in front
  std::uint64_t bytes = 0;
};

/// Where everything is, known from names and sizes before any data is.
class archive_layout {
 public:
  /// Data begins at multiples of this; the record `.storage_alignment` has to say the same.
  static constexpr std::uint64_t alignment = 64;

  /// `name` is the folder that holds all records, as `archive`. Precondition: names are no longer
  /// than 60,000 bytes.
  archive_layout(std::string_view name, const std::vector<record>& records);

  /// Of the whole file.
  std::uint64_t bytes() const { return bytes_; }
  /// Where the data of a record begins.
  std::uint64_t data_of(std::size_t index) const { return places_[index].data; }

  /// Writes all that is not data: headers, padding, descriptors and the directory, with 0 for each
  /// CRC-32 that `seal` will know. `snapshot` has room for `bytes()`.
  void write_frame(char* snapshot) const;

 private:
  struct place {
    std::string name;
    std::uint64_t bytes, header, data;
    bool large() const;   ///< its size needs ZIP64
    bool distant() const; ///< its header's place needs ZIP64
    bool extended() const { return large() || distant(); }
  };
  void write_header(char* to, const place& p) const;
  char* write_entry(char* to, const place& p) const;
  void write_end(char* to) const;

  std::vector<place> places_;
  std::uint64_t directory_ = 0; ///< where it begins
  std::uint64_t end_ = 0;       ///< where it ends
  std::uint64_t bytes_ = 0;
};

/// A record as the directory of an archive tells.
struct archive_entry {
  std::string_view name; ///< as it stands there; points into the snapshot
  std::uint64_t data = 0, bytes = 0;
  std::uint32_t crc = 0;
  std::uint64_t crc_at = 0;             ///< where the directory has it
  std::uint64_t crc_behind_data_at = 0; ///< where the descriptor has it; 0: there is none
};

/// Reads the directory of an archive whose records are stored. Every position is judged, so that an
/// snapshot of anybody's making may be read; `invalid` says what is wrong and where.
result<std::vector<archive_entry>> read_archive(std::string_view snapshot);

/// Fills in the CRC-32 of every record, in the descriptors and in the directory.
result<void> seal(char* snapshot, std::size_t bytes);

/// Compares every record with its CRC-32; `invalid` names the first that is damaged.
result<void> verify(std::string_view snapshot);

} // namespace troupe::ckpt
