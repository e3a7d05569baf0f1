#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// A snapshot of several files.
///
/// A rank of FSDP, Megatron or DeepSpeed has more than one file in a step, and they are worth
/// something only together. A snapshot is one piece of memory, which is copied, summed up over
/// nodes and brought back as such, by processes that know nothing of files. So the files lie in it
/// one behind another, and at its end stands the list that says which is where. On a disk the list
/// is a file as well: the step's manifest names it, and it has the sizes and checksums of the
/// others. A rank that has nothing to keep has a list of no files: it takes part in the step. A
/// snapshot without a list is one file of torch.save.
///
/// Format, all numbers little endian, at a multiple of `file_alignment`:
///
///     "trpfiles"  u32 version  u32 files  u64 archives
///     for each file, in order:  u64 begin  u64 bytes  u32 crc32  u16 length of its name  name
///     for each archive, in order:  u64 begin  u64 bytes
///     u64 begin of the list  u32 crc32 of all before  "trp-list"
namespace troupe::ckpt {

struct listed_file {
  std::string name;                   ///< below the step's directory: "a.pt", "rank_0/a.pt"
  std::uint64_t begin = 0, bytes = 0; ///< in the snapshot
  std::uint32_t crc32 = 0;            ///< 0 until the snapshot is sealed
};

/// Bytes of the snapshot that are an archive of torch.save, in one of the files: its records have
/// checksums of their own, which sealing fills in.
struct listed_archive {
  std::uint64_t begin = 0, bytes = 0;
};

struct file_list {
  /// Files begin at multiples of this, as direct writes need it.
  static constexpr std::uint64_t file_alignment = 4096;

  std::vector<listed_file> files;       ///< in their order in the snapshot
  std::vector<listed_archive> archives; ///< also
  std::uint64_t begin = 0;              ///< of the list itself; the snapshot ends with it

  std::uint64_t bytes() const; ///< of the list
  std::uint64_t snapshot_bytes() const { return begin + bytes(); }
};

/// The first multiple of file_list::file_alignment that is not below `at`.
std::uint64_t aligned_for_file(std::uint64_t at);

/// What is wrong with a list that was put together from what callers said, or nothing: too much of
/// something, a name that a storage cannot have or that is ours, one name twice, places that
/// overlap.
result<void> check(const file_list& list);

/// Precondition: `check` has found nothing; `to` has room for `bytes()`.
void write_list(char* to, const file_list& list);

/// Whether a snapshot has a list: it ends with its mark.
bool has_file_list(std::string_view snapshot);
/// The list of a snapshot that has one. Every number in it is judged; `invalid` says what is wrong.
result<file_list> list_in(std::string_view snapshot);
/// The same from the list's own bytes, as they stand in its file.
result<file_list> list_of(std::string_view text);

/// The name of a shard's list on a disk, and whether a name is one.
std::string list_name(std::uint32_t shard);
bool is_list_name(std::string_view name);

} // namespace troupe::ckpt
