#include "runtime/os/storage/file_ops.hpp"
#include "runtime/os/storage/ring_queue.hpp"

#include <cerrno>
#include <limits>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace troupe::os {

namespace {

template<class T>
T or_errno(T answer) {
  return answer < 0 ? static_cast<T>(-errno) : answer;
}

/// Again, as long as only a signal was in the way.
template<class Call>
auto uninterrupted(Call call) {
  while (true) {
    const auto answer = call();
    if (answer >= 0 || errno != EINTR)
      return or_errno(answer);
  }
}

directory_entry::kind_of kind_of(int directory, const ::dirent& found) {
  using kind = directory_entry::kind_of;
  if (found.d_type == DT_REG)
    return kind::file;
  if (found.d_type == DT_DIR)
    return kind::directory;
  if (found.d_type != DT_LNK && found.d_type != DT_UNKNOWN)
    return kind::other;
  struct stat behind {};
  const int how = found.d_type == DT_LNK ? 0 : AT_SYMLINK_NOFOLLOW;
  if (::fstatat(directory, found.d_name, &behind, how) < 0)
    return kind::other;
  if (S_ISREG(behind.st_mode))
    return kind::file;
  return S_ISDIR(behind.st_mode) && found.d_type == DT_UNKNOWN ? kind::directory : kind::other;
}

class kernel_files final : public file_ops {
 public:
  int open(const std::string& path, int flags) override {
    return uninterrupted([&path, flags] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  }
  void close(int file) override { ::close(file); }
  std::int64_t pwrite(int file, const std::byte* from, std::size_t bytes,
                      std::uint64_t at) override {
    return or_errno<std::int64_t>(::pwrite(file, from, bytes, static_cast<off_t>(at)));
  }
  std::int64_t pread(int file, std::byte* into, std::size_t bytes, std::uint64_t at) override {
    return or_errno<std::int64_t>(::pread(file, into, bytes, static_cast<off_t>(at)));
  }
  std::int64_t size(int file) override {
    struct stat found {};
    if (::fstat(file, &found) < 0)
      return -errno;
    if (!S_ISREG(found.st_mode))
      return S_ISDIR(found.st_mode) ? -EISDIR : -ENXIO;
    return found.st_size;
  }
  std::int64_t size_of(const std::string& path) override {
    struct stat found {};
    return ::stat(path.c_str(), &found) < 0 ? -errno : std::int64_t{found.st_size};
  }
  int fallocate(int file, std::uint64_t bytes) override {
    // Beyond the process's own limit the kernel would send a signal that ends us.
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur)
      return -EFBIG;
    return uninterrupted(
        [file, bytes] { return ::fallocate(file, 0, 0, static_cast<off_t>(bytes)); });
  }
  int ftruncate(int file, std::uint64_t bytes) override {
    return uninterrupted([file, bytes] { return ::ftruncate(file, static_cast<off_t>(bytes)); });
  }
  int fsync(int file) override {
    return uninterrupted([file] { return ::fsync(file); });
  }
  int flock(int file) override {
    return uninterrupted([file] { return ::flock(file, LOCK_EX | LOCK_NB); });
  }
  int links(int file) override {
    struct stat found {};
    return ::fstat(file, &found) < 0 ? -errno : static_cast<int>(found.st_nlink);
  }
  int rename(const std::string& from, const std::string& to) override {
    return or_errno(::rename(from.c_str(), to.c_str()));
  }
  int unlink(const std::string& path) override { return or_errno(::unlink(path.c_str())); }
  bool is_link(const std::string& path) override {
    struct stat found {};
    return ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
  }
  int mkdir(const std::string& path) override { return or_errno(::mkdir(path.c_str(), 0777)); }
  int rmdir(const std::string& path) override { return or_errno(::rmdir(path.c_str())); }

  int entries(const std::string& path, std::vector<directory_entry>& into) override {
    ::DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr)
      return -errno;
    errno = 0;
    while (const ::dirent* found = ::readdir(directory)) {
      std::string name = found->d_name;
      if (name != "." && name != "..")
        into.push_back({std::move(name), kind_of(::dirfd(directory), *found)});
      errno = 0;
    }
    const int wrong = errno;
    ::closedir(directory);
    return -wrong;
  }
  std::uint64_t free_bytes(const std::string& directory) override {
    struct statvfs found {};
    // Without a size, as ramfs and some network file systems are, what is free says nothing either.
    if (::statvfs(directory.c_str(), &found) < 0 || found.f_blocks == 0)
      return std::numeric_limits<std::uint64_t>::max();
    return std::uint64_t{found.f_bavail} * found.f_frsize;
  }
  std::unique_ptr<write_queue> queue(unsigned depth, std::string& why_not) override {
    return ring_queue(depth, why_not);
  }
};

} // namespace

std::unique_ptr<file_ops> real_file_ops() {
  return std::make_unique<kernel_files>();
}

} // namespace troupe::os
