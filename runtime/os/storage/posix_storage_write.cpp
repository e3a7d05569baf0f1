#include "runtime/base/limits.hpp"
#include "runtime/os/storage/posix_storage.hpp"
#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

namespace troupe::os {

using ports::bytes_view;
using ports::receipt;

namespace {

/// Directories that are remembered as settled; beyond that they are looked at again.
constexpr std::size_t settled_max = 4'096;

std::string parent_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

bool cannot_reserve(int answer) {
  return answer == -EOPNOTSUPP || answer == -ENOSYS || answer == -EINVAL;
}

} // namespace

result<receipt> posix_storage::put_if(const std::string& name, bytes_view bytes,
                                      const std::atomic<bool>& stop,
                                      const ports::may_replace& may) {
  if (auto valid = ports::valid_name(name); !valid)
    return tl::make_unexpected(std::move(valid.error()));
  if (auto settled = settle(parent_of(name)); !settled)
    return tl::make_unexpected(std::move(settled.error()));
  auto put = write(path_of(name), bytes, stop, may);
  if (!put && put.error().code == errc::absent) {
    // Its directory was removed by another process since it was looked at.
    settled_.clear();
    if (auto settled = settle(parent_of(name)); !settled)
      return tl::make_unexpected(std::move(settled.error()));
    put = write(path_of(name), bytes, stop, may);
  }
  if (!put)
    leave_no_empty_directory(parent_of(name));
  return put;
}

/// It was made for the file that could not be put, maybe after all else of a step was removed. A
/// process that has seen it meanwhile makes it anew.
void posix_storage::leave_no_empty_directory(const std::string& directory) {
  if (!directory.empty() && files_->rmdir(path_of(directory)) == 0)
    settled_.clear();
}

result<void> posix_storage::replace(const std::string& name, std::string_view content) {
  if (content.size() > limits::storage_small_max)
    return failure(errc::invalid,
                   fmt::format("'{}' is no small file: {} bytes", path_of(name), content.size()));
  auto put = this->put(name, ports::bytes_of(content), ports::never_stops);
  if (!put)
    return tl::make_unexpected(std::move(put.error()));
  return {};
}

// ---- directories -------------------------------------------------------------------------------

/// Sees to it that a directory is there, durably, and free of what dead processes have left.
result<void> posix_storage::settle(const std::string& directory) {
  if (settled_.count(directory) != 0)
    return {};
  if (auto settled = settle_once(directory); !settled)
    return settled;
  sweep_part_files(*files_, path_of(directory));
  if (settled_.size() >= settled_max)
    settled_.clear();
  settled_.insert(directory);
  return {};
}

result<void> posix_storage::settle_once(const std::string& directory) {
  if (directory.empty())
    return make_root(root_, 0);
  const auto parent = parent_of(directory);
  if (auto settled = settle(parent); !settled)
    return settled;
  const auto path = path_of(directory);
  const int answer = files_->mkdir(path);
  if (answer < 0 && answer != -EEXIST)
    return tl::make_unexpected(storage_error("made", path, -answer));
  if (answer == -EEXIST && is_others(directory))
    return failure(errc::refused, fmt::format("'{}' is a link to another directory, where nothing "
                                              "is written: remove the link, or save elsewhere",
                                              path));
  // The process that has made it may not have synced it.
  return sync_directory(path_of(parent));
}

/// A link that a person has put there leads to what is kept elsewhere: the steps of another run, or
/// those that were moved to another disk. They can be read here; nothing is changed there. Of
/// Troupe's own names all is its own, wherever it is.
bool posix_storage::is_others(const std::string& directory) {
  return directory.front() != '.' && files_->is_link(path_of(directory));
}

result<void> posix_storage::make_root(const std::string& path, std::size_t depth) {
  if (depth > limits::storage_depth_max)
    return failure(errc::invalid, fmt::format("'{}' is too deep", root_));
  const auto slash = path.rfind('/');
  const auto parent = slash == std::string::npos ? std::string(".")
                      : slash == 0               ? std::string("/")
                                                 : path.substr(0, slash);
  int answer = files_->mkdir(path);
  if (answer == -ENOENT) {
    if (auto made = make_root(parent, depth + 1); !made)
      return made;
    answer = files_->mkdir(path);
  }
  if (answer < 0 && answer != -EEXIST)
    return tl::make_unexpected(storage_error("made", path, -answer));
  // The process that has made it may not have synced it; but one that may not look at its parent
  // has not made it.
  auto synced = sync_directory(parent);
  if (!synced && answer == -EEXIST && synced.error().code == errc::refused)
    return {};
  return synced;
}

result<void> posix_storage::sync_directory(const std::string& path) {
  const int file = files_->open(path, O_RDONLY | O_DIRECTORY);
  if (file < 0)
    return tl::make_unexpected(storage_error("opened", path, -file));
  const int answer = files_->fsync(file);
  files_->close(file);
  // Some file systems have no such thing: their names are durable at once, or never.
  if (answer < 0 && answer != -EINVAL)
    return tl::make_unexpected(storage_error("synced", path, -answer));
  return {};
}

// ---- writing -----------------------------------------------------------------------------------

bool posix_storage::directly(bytes_view bytes) const {
  return how_.direct && bytes.size >= how_.direct_from && is_aligned(bytes);
}

void posix_storage::give_direct_up(std::string why) {
  how_.direct = false;
  plain_because_ = std::move(why);
}

result<receipt> posix_storage::write(const std::string& path, bytes_view bytes,
                                     const std::atomic<bool>& stop, const ports::may_replace& may) {
  while (true) {
    bool direct = directly(bytes);
    part_file part(*files_);
    if (const int answer = create_part(part, directory_of(path), direct); answer < 0)
      return tl::make_unexpected(write_error(*files_, path, bytes.size, -answer));
    bool direct_refused = false;
    auto wrote = write_part(part, path, bytes, direct, stop, direct_refused);
    if (!direct_refused)
      return wrote ? publish(part, path, *wrote, may) : wrote;
    // Once: no direct write is tried any more.
    give_direct_up("this file system takes no direct writes");
  }
}

int posix_storage::create_part(part_file& part, const std::string& directory, bool& direct) {
  const int answer = part.create(directory, next_part_, O_WRONLY | (direct ? O_DIRECT : 0));
  if (answer != -EINVAL || !direct)
    return answer;
  give_direct_up("this file system has no direct writes");
  direct = false;
  return part.create(directory, next_part_, O_WRONLY);
}

write_queue& posix_storage::queue_for(bool direct) {
  if (direct && how_.ring && !ring_refused_ && !ring_) {
    ring_ = files_->queue(how_.depth, plain_because_);
    ring_refused_ = ring_ == nullptr;
  }
  return direct && ring_ ? *ring_ : static_cast<write_queue&>(plain_);
}

result<receipt> posix_storage::write_part(part_file& part, const std::string& path,
                                          bytes_view bytes, bool direct,
                                          const std::atomic<bool>& stop, bool& direct_refused) {
  const auto fail = [this, &path, &bytes](int answer) {
    return tl::make_unexpected(write_error(*files_, path, bytes.size, -answer));
  };
  const int file = part.descriptor();
  // Some file systems would take all the room there is before they find that it is too little.
  if (bytes.size > files_->free_bytes(directory_of(path)))
    return fail(-ENOSPC);
  // The disk can lay it out in one, and no other file takes the room meanwhile.
  if (bytes.size > 0)
    if (const int answer = files_->fallocate(file, bytes.size);
        answer < 0 && !cannot_reserve(answer))
      return fail(answer);
  write_queue& queue = queue_for(direct);
  const unsigned depth = &queue == &plain_ ? 1 : how_.depth;
  const auto wrote = block_writer(queue, {how_.block, depth, direct}).write(file, bytes, stop);
  if (wrote.queue_failed)
    ring_.reset();
  if (wrote.stopped)
    return failure(errc::closed, fmt::format("'{}' was not written: stopped", path));
  direct_refused = direct && wrote.wrong == EINVAL;
  if (wrote.wrong != 0)
    return fail(-wrote.wrong);
  if (direct && bytes.size % direct_alignment != 0)
    if (const int answer = files_->ftruncate(file, bytes.size); answer < 0)
      return fail(answer);
  if (const int answer = files_->fsync(file); answer < 0)
    return fail(answer);
  return receipt{bytes.size, wrote.crc32};
}

result<receipt> posix_storage::publish(part_file& part, const std::string& path,
                                       const receipt& written, const ports::may_replace& may) {
  if (auto allowed = may(); !allowed)
    return tl::make_unexpected(std::move(allowed.error()));
  if (const int answer = part.publish(path); answer < 0)
    return tl::make_unexpected(write_error(*files_, path, written.bytes, -answer));
  if (auto synced = sync_directory(directory_of(path)); !synced)
    return tl::make_unexpected(std::move(synced.error()));
  return written;
}

// ---- removing ----------------------------------------------------------------------------------

result<void> posix_storage::remove(const std::string& name) {
  if (auto valid = ports::valid_name(name); !valid)
    return valid;
  settled_.clear();
  for (auto above = parent_of(name); !above.empty(); above = parent_of(above))
    if (is_others(above))
      return {};
  const auto path = path_of(name);
  const int answer = files_->unlink(path);
  if (answer == -ENOTDIR)
    return {};
  if (answer == -EISDIR || answer == -EPERM) {
    if (auto removed = remove_tree(path, 0); !removed)
      return removed;
  } else if (answer < 0 && answer != -ENOENT) {
    return tl::make_unexpected(storage_error("removed", path, -answer));
  }
  // Also if it was gone already: its remover may not have synced.
  auto synced = sync_directory(path_of(parent_of(name)));
  if (!synced && synced.error().code == errc::absent)
    return {};
  return synced;
}

result<void> posix_storage::remove_tree(const std::string& path, std::size_t depth) {
  using kind = directory_entry::kind_of;
  if (depth > limits::storage_depth_max)
    return failure(errc::refused, fmt::format("'{}' is too deep to be removed", path));
  std::vector<directory_entry> entries;
  if (const int answer = files_->entries(path, entries); answer < 0 && answer != -ENOENT)
    return tl::make_unexpected(storage_error("removed", path, -answer));
  for (const auto& entry : entries) {
    const auto below = path + "/" + entry.name;
    if (entry.kind == kind::directory) {
      if (auto removed = remove_tree(below, depth + 1); !removed)
        return removed;
    } else if (const int answer = files_->unlink(below); answer < 0 && answer != -ENOENT) {
      return tl::make_unexpected(storage_error("removed", below, -answer));
    }
  }
  if (const int answer = files_->rmdir(path); answer < 0 && answer != -ENOENT)
    return tl::make_unexpected(storage_error("removed", path, -answer));
  return {};
}

} // namespace troupe::os
