#pragma once

#include "runtime/base/result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::ports {

/// Bytes somewhere in memory: a slot, mapped and page aligned, or anything else.
struct bytes_view {
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

/// The same, to be filled.
struct bytes_room {
  std::byte* data = nullptr;
  std::size_t size = 0;
};

/// The bytes of a text.
inline bytes_view bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Of a file as it was written or read: a later reader compares.
struct receipt {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0; ///< of the whole file, as in zip and gzip

  friend bool operator==(const receipt& a, const receipt& b) {
    return a.bytes == b.bytes && a.crc32 == b.crc32;
  }
};

struct stored_file {
  std::string name;
  std::uint64_t bytes = 0;
};

/// What lies directly in the place.
struct stored_entry {
  std::string name;
  bool is_file = false; ///< else a directory, or a link to one
};

/// Asked right before a file takes the place of another. May use the storage to look.
using may_replace = std::function<result<void>()>;

/// For a caller that never ends a put or get early.
inline const std::atomic<bool> never_stops{false};

/// Where checkpoints are kept: a directory, or an object store. Files are whole: one is there with
/// all its bytes or not at all, at every moment, for every reader, and after a power cut.
///
/// Calls block; they belong to a saver's own thread. One thread at a time uses an object; several
/// objects, of several processes and machines, may share a place.
///
/// A name is relative, in the form a/b/c. None of its parts is empty, `.` or `..`; see valid_name.
/// Files whose last part begins with `.troupe-part-` are the storage's own and never shown.
///
/// Errors name the file: `absent` for a file that is not there, `invalid` for a name that is none
/// or a file that does not fit, `refused` for what will not change by itself (permissions, a
/// read-only place, a limit), `unavailable` for what may (a full disk, an input/output error),
/// `closed` after `stop`.
class storage {
 public:
  virtual ~storage() = default;

  /// Writes a whole file. When it returns the file is durable under its name; until then, and after
  /// an error, an earlier file of that name is there as it was. (Only if the very last step fails,
  /// making the name durable, is the new one there, and whole.) `bytes` must not change meanwhile.
  /// `stop` is looked at between blocks.
  result<receipt> put(const std::string& name, bytes_view bytes, const std::atomic<bool>& stop) {
    return put_if(name, bytes, stop, [] { return result<void>{}; });
  }

  /// The same, but asks once all is written whether the file may take its place, which it does at
  /// once then. What is refused is the answer, and an earlier file stays as it was. Writing takes
  /// long, and meanwhile another process may have put what must not be replaced.
  virtual result<receipt> put_if(const std::string& name, bytes_view bytes,
                                 const std::atomic<bool>& stop, const may_replace& may) = 0;

  /// Reads a whole file to the beginning of `into`, which must have room for it. What is there
  /// after an error means nothing.
  virtual result<receipt> get(const std::string& name, bytes_room into,
                              const std::atomic<bool>& stop) = 0;

  /// The same for a small file, of at most `limit` bytes.
  virtual result<std::string> get_small(const std::string& name, std::size_t limit) = 0;

  /// Puts a small file in the place of another, with put's promises.
  virtual result<void> replace(const std::string& name, std::string_view content) = 0;

  /// Every file below a directory (of all, for an empty name), sorted; names as put has them. Of a
  /// file: that one. None if there is neither.
  virtual result<std::vector<stored_file>> list(const std::string& below) = 0;

  /// What lies directly in the place, sorted, without what is below it. None if there is no place.
  virtual result<std::vector<stored_entry>> entries() = 0;

  /// Removes a file, or everything below a directory, durably. What is not there is no error; of
  /// what is removed any part may be left after an error or a power cut. A link goes, and nothing
  /// of what lies behind it: it is not of this place, and nothing is put there either.
  virtual result<void> remove(const std::string& name) = 0;

  /// Where and how, for a log: "'/data/ckpt', direct writes of 4.0 MiB, 8 at a time (io_uring)".
  /// May say more after the first put.
  virtual std::string describe() const = 0;
};

/// What is wrong with a name, or nothing.
result<void> valid_name(std::string_view name);

/// What begins the last part of names that a storage uses while it writes.
inline constexpr std::string_view part_prefix = ".troupe-part-";

} // namespace troupe::ports
