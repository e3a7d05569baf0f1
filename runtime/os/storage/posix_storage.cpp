#include "runtime/os/storage/posix_storage.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include <fcntl.h>

namespace troupe::os {

using ports::bytes_room;
using ports::receipt;

namespace {

/// A directory whose files go all the time is listed as it was last seen.
constexpr int list_tries_max = 64;

/// What is read at a time, between two looks at whether to stop.
constexpr std::size_t read_block = 8u << 20;
std::string below_root(std::string root) {
  while (root.size() > 1 && root.back() == '/')
    root.pop_back();
  return root.empty() ? "." : root;
}

std::uint64_t drawn_number() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) ^ entropy();
}

/// What another process removes while it is looked for is not there. A part of its path may be a
/// file by then.
bool is_gone(std::int64_t answer) {
  return answer == -ENOENT || answer == -ENOTDIR || answer == -ESTALE;
}

/// A file that is open for reading.
class open_file {
 public:
  open_file(file_ops& files, const std::string& path)
      : files_(files), number_(opened(files, path)) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() {
    if (number_ >= 0)
      files_.close(number_);
  }
  /// A descriptor or -errno.
  int number() const { return number_; }
  /// Or -errno; what is no regular file has none.
  std::int64_t size() const { return number_ < 0 ? number_ : files_.size(number_); }

 private:
  /// A FIFO has an end for reading at once, and not only when a process writes to it. A lease is
  /// waited for, as the kernel takes it away soon.
  static int opened(file_ops& files, const std::string& path) {
    const int number = files.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    return number == -EWOULDBLOCK ? files.open(path, O_RDONLY | O_NOCTTY) : number;
  }

  file_ops& files_;
  int number_;
};

/// Reads as much as there is room for; answers that many bytes, fewer at the end of the file, or
/// -errno.
std::int64_t read_block_of(file_ops& files, int file, bytes_room into, std::uint64_t at) {
  std::size_t done = 0;
  while (done < into.size) {
    const auto answer = files.pread(file, into.data + done, into.size - done, at + done);
    if (answer == 0)
      break;
    if (answer < 0 && answer != -EINTR)
      return answer;
    done += answer > 0 ? static_cast<std::size_t>(answer) : 0;
  }
  return static_cast<std::int64_t>(done);
}

result<receipt> read_whole(file_ops& files, const std::string& path, int file, bytes_room into,
                           const std::atomic<bool>& stop) {
  receipt read;
  while (read.bytes < into.size) {
    if (stop.load(std::memory_order_relaxed))
      return failure(errc::closed, fmt::format("'{}' was not read to its end: stopped", path));
    const bytes_room block{into.data + read.bytes,
                           std::min<std::size_t>(read_block, into.size - read.bytes)};
    const auto answer = read_block_of(files, file, block, read.bytes);
    if (answer < 0)
      return tl::make_unexpected(storage_error("read", path, static_cast<int>(-answer)));
    if (static_cast<std::size_t>(answer) < block.size)
      return failure(errc::invalid, fmt::format("'{}' ends after {} bytes of {}", path,
                                                read.bytes + answer, into.size));
    read.crc32 = libdeflate_crc32(read.crc32, block.data, block.size);
    read.bytes += block.size;
  }
  return read;
}

} // namespace

posix_storage::posix_storage(std::string root, posix_storage_options how,
                             std::unique_ptr<file_ops> files)
    : root_(below_root(std::move(root))), how_(how), files_(std::move(files)),
      next_part_(how.first_part != 0 ? how.first_part : drawn_number()), plain_(*files_) {
  if (!how_.direct)
    plain_because_ = "not wanted";
}

posix_storage::~posix_storage() = default;

std::string posix_storage::path_of(const std::string& name) const {
  if (name.empty())
    return root_;
  return root_ == "/" ? "/" + name : root_ + "/" + name;
}

std::string posix_storage::describe() const {
  const auto block = in_words(how_.block);
  if (!how_.direct)
    return fmt::format("'{}', writes of {} through the page cache ({})", root_, block,
                       plain_because_);
  if (!how_.ring || ring_refused_)
    return fmt::format("'{}', direct writes of {}, one at a time ({})", root_, block,
                       ring_refused_ ? plain_because_ : "io_uring is not wanted");
  return fmt::format("'{}', direct writes of {}, {} at a time (io_uring)", root_, block,
                     how_.depth);
}

// ---- reading -----------------------------------------------------------------------------------

result<receipt> posix_storage::get(const std::string& name, bytes_room into,
                                   const std::atomic<bool>& stop) {
  if (auto valid = ports::valid_name(name); !valid)
    return tl::make_unexpected(std::move(valid.error()));
  const auto path = path_of(name);
  const open_file file(*files_, path);
  const auto size = file.size();
  if (size < 0)
    return tl::make_unexpected(storage_error("read", path, static_cast<int>(-size)));
  if (static_cast<std::uint64_t>(size) > into.size)
    return failure(errc::invalid,
                   fmt::format("'{}' has {} bytes, {} were expected", path, size, into.size));
  return read_whole(*files_, path, file.number(), {into.data, static_cast<std::size_t>(size)},
                    stop);
}

result<std::string> posix_storage::get_small(const std::string& name, std::size_t limit) {
  if (auto valid = ports::valid_name(name); !valid)
    return tl::make_unexpected(std::move(valid.error()));
  const auto path = path_of(name);
  const open_file file(*files_, path);
  const auto size = file.size();
  if (size < 0)
    return tl::make_unexpected(storage_error("read", path, static_cast<int>(-size)));
  if (static_cast<std::uint64_t>(size) > limit)
    return failure(errc::invalid,
                   fmt::format("'{}' has {} bytes, more than {} are not read", path, size, limit));
  std::string content(static_cast<std::size_t>(size), '\0');
  const bytes_room room{reinterpret_cast<std::byte*>(content.data()), content.size()};
  auto read = read_whole(*files_, path, file.number(), room, ports::never_stops);
  if (!read)
    return tl::make_unexpected(std::move(read.error()));
  return content;
}

result<std::vector<ports::stored_file>> posix_storage::list(const std::string& below) {
  if (!below.empty())
    if (auto valid = ports::valid_name(below); !valid)
      return tl::make_unexpected(std::move(valid.error()));
  std::vector<ports::stored_file> found;
  // One that goes between its name and its size: the file that took its place may have come after
  // the names were read. A list without both would say that there is neither.
  bool one_has_gone = true;
  for (int tries = 0; one_has_gone && tries < list_tries_max; ++tries) {
    one_has_gone = false;
    found.clear();
    if (auto listed = list_into(below, 0, found, one_has_gone); !listed)
      return tl::make_unexpected(std::move(listed.error()));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

result<void> posix_storage::list_into(const std::string& name, std::size_t depth,
                                      std::vector<ports::stored_file>& found, bool& one_has_gone) {
  using kind = directory_entry::kind_of;
  const auto path = path_of(name);
  if (depth > limits::storage_depth_max)
    return failure(errc::refused, fmt::format("'{}' is too deep below '{}'", path, root_));
  std::vector<directory_entry> entries;
  const int answer = files_->entries(path, entries);
  if (answer == -ENOTDIR && depth == 0)
    return list_file(name, found);
  if (is_gone(answer))
    return {};
  if (answer < 0)
    return tl::make_unexpected(storage_error("listed", path, -answer));
  for (const auto& entry : entries) {
    if (is_part_file(entry.name) || entry.kind == kind::other)
      continue;
    auto full = name.empty() ? entry.name : name + "/" + entry.name;
    if (entry.kind == kind::directory) {
      if (auto listed = list_into(full, depth + 1, found, one_has_gone); !listed)
        return listed;
      continue;
    }
    const auto size = files_->size_of(path_of(full));
    if (size < 0 && !is_gone(size))
      return tl::make_unexpected(storage_error("listed", path_of(full), static_cast<int>(-size)));
    one_has_gone = one_has_gone || size < 0;
    if (size >= 0)
      found.push_back({std::move(full), static_cast<std::uint64_t>(size)});
    if (found.size() > limits::storage_list_max)
      return failure(errc::overloaded,
                     fmt::format("'{}' has more than {} files", root_, limits::storage_list_max));
  }
  return {};
}

result<std::vector<ports::stored_entry>> posix_storage::entries() {
  using kind = directory_entry::kind_of;
  std::vector<directory_entry> there;
  const int answer = files_->entries(root_, there);
  if (answer < 0 && !is_gone(answer))
    return tl::make_unexpected(storage_error("listed", root_, -answer));
  std::vector<ports::stored_entry> found;
  if (answer < 0)
    return found;
  for (auto& entry : there)
    if (!is_part_file(entry.name))
      found.push_back({std::move(entry.name), entry.kind == kind::file});
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

/// What is listed may be a file itself, or below one and therefore not there.
result<void> posix_storage::list_file(const std::string& name,
                                      std::vector<ports::stored_file>& found) {
  const auto path = path_of(name);
  const auto size = files_->size_of(path);
  if (is_gone(size))
    return {};
  if (size < 0)
    return tl::make_unexpected(storage_error("listed", path, static_cast<int>(-size)));
  found.push_back({name, static_cast<std::uint64_t>(size)});
  return {};
}

} // namespace troupe::os
