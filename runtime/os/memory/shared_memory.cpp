#include "runtime/os/memory/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE // Linux 5.14; Debian 12's headers know it, older ones do not
#define MADV_POPULATE_WRITE 23
#endif

namespace troupe::os {

namespace {

constexpr std::uint64_t populate_step = 16u << 20;

tl::unexpected<error> refused(const char* what, std::uint64_t bytes) {
  return failure(errc::refused, fmt::format("{} of {} MiB of shared memory: {}", what, bytes >> 20,
                                            std::strerror(errno)));
}

char* map(int descriptor, std::uint64_t bytes) {
  auto* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED)
    return nullptr;
  // Only a wish: most kernels are set to give shared memory small pages whatever is asked.
  madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(at);
}

} // namespace

result<shared_memory> shared_memory::create(const std::string& name, std::uint64_t bytes) {
  const auto descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0)
    return refused("making", bytes);
  shared_memory made(descriptor, nullptr, 0);
  if (const auto grown = made.grow(bytes); !grown)
    return tl::make_unexpected(grown.error());
  return made;
}

result<void> shared_memory::grow(std::uint64_t bytes) {
  if (const auto shown = show(bytes); !shown || bytes == 0)
    return shown;
  auto* const at = map(descriptor_, bytes);
  if (at == nullptr)
    return refused("mapping", bytes);
  if (data_ != nullptr)
    munmap(data_, bytes_);
  data_ = at;
  bytes_ = bytes;
  return {};
}

result<void> shared_memory::follow() {
  struct stat about {};
  if (fstat(descriptor_, &about) != 0)
    return refused("looking at a piece", bytes_);
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (bytes == bytes_)
    return {};
  auto* const at = bytes == 0 ? nullptr : map(descriptor_, bytes);
  if (at == nullptr && bytes != 0)
    return refused("mapping", bytes);
  if (data_ != nullptr)
    munmap(data_, bytes_);
  data_ = at;
  bytes_ = bytes;
  return {};
}

result<void> shared_memory::clear() {
  if (data_ != nullptr)
    munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
  return show(0);
}

result<shared_memory> shared_memory::adopt(int descriptor) {
  shared_memory made(descriptor, nullptr, 0);
  struct stat about {};
  if (fstat(descriptor, &about) != 0)
    return refused("looking at what should be a piece", 0);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC); // it may have been inherited
  if (!S_ISREG(about.st_mode))
    return failure(errc::invalid, fmt::format("descriptor {} is no shared memory", descriptor));
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (bytes == 0)
    return made;
  made.data_ = map(descriptor, bytes);
  if (made.data_ == nullptr)
    return refused("mapping", bytes);
  made.bytes_ = bytes;
  return made;
}

shared_memory::shared_memory(shared_memory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

shared_memory& shared_memory::operator=(shared_memory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

shared_memory::~shared_memory() {
  if (data_ != nullptr)
    munmap(data_, bytes_);
  if (descriptor_ >= 0)
    close(descriptor_);
}

result<void> shared_memory::show(std::uint64_t bytes) const {
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    return refused("sizing", bytes);
  return {};
}

result<void> shared_memory::populate(std::uint64_t bytes, const std::atomic<bool>& stop) const {
  const auto end = std::min(bytes, bytes_);
  for (std::uint64_t at = 0; at < end && !stop; at += populate_step) {
    const auto now = std::min(populate_step, end - at);
    while (madvise(data_ + at, now, MADV_POPULATE_WRITE) != 0) {
      if (errno == EINTR || errno == EAGAIN)
        continue;
      // A kernel before 5.14: whoever writes first waits for the pages. Or less is shown by now.
      if (errno == EINVAL || errno == EFAULT)
        return {};
      return refused("filling", bytes);
    }
  }
  return {};
}

} // namespace troupe::os
