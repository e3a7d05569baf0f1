#include "runtime/os/memory/shared_memory.hpp"

#include "runtime/os/memory/huge_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
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

/// An address at which a mapping of so many bytes can have huge pages: the kernel puts those of
/// files anywhere. 0 if it is too small for that, or there is no room. It is occupied.
char* aligned_place(std::uint64_t bytes) {
  if (bytes < huge_page_bytes)
    return nullptr;
  const auto room = bytes + huge_page_bytes;
  auto* const found =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED)
    return nullptr;
  auto* const begin = static_cast<char*>(found);
  const auto before =
      (huge_page_bytes - reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes) %
      huge_page_bytes;
  if (before != 0)
    munmap(begin, before);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto end = (before + bytes + page - 1) / page * page;
  if (end < room)
    munmap(begin + end, room - end);
  return begin + before;
}

char* map(int descriptor, std::uint64_t bytes) {
  auto* const place = aligned_place(bytes);
  auto* const at = mmap(place, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | (place == nullptr ? 0 : MAP_FIXED), descriptor, 0);
  if (at == MAP_FAILED) // the place may be another mapping's by now: it is not given back
    return nullptr;
  // Only a wish: most kernels are set to give shared memory small pages whatever is asked.
  madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(at);
}

/// Makes the pages be there that are not. False: this kernel does not do that, or less is shown by
/// now. The error is left in errno.
std::optional<bool> make_pages(char* begin, std::uint64_t bytes) {
  while (madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN)
      continue;
    // A kernel before 5.14: the first writes wait for the pages.
    if (errno == EINVAL || errno == EFAULT)
      return false;
    return std::nullopt;
  }
  return true;
}

/// The same, with as much of it on huge pages as the system has: they are made only where some page
/// is there already. What they leave to do for the rest is nothing; without any, it is everything.
std::optional<bool> make_pages_huge_if_possible(char* begin, std::uint64_t bytes,
                                                const std::atomic<bool>& stop) {
  for (std::uint64_t at = 0; at + huge_page_bytes <= bytes; at += huge_page_bytes)
    if (const auto made = make_pages(begin + at, 1); made != true)
      return made;
  move_to_huge_pages(begin, bytes, stop);
  return make_pages(begin, bytes);
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

result<shared_memory> shared_memory::share(int descriptor) {
  const auto own = dup(descriptor);
  if (own < 0)
    return failure(errc::refused,
                   fmt::format("descriptor {}: {}", descriptor, std::strerror(errno)));
  return adopt(own);
}

result<void> shared_memory::grow(std::uint64_t bytes) {
  if (const auto shown = show(bytes); !shown || bytes == 0)
    return shown;
  return remap(bytes);
}

result<void> shared_memory::follow() {
  struct stat about {};
  if (fstat(descriptor_, &about) != 0)
    return refused("looking at a piece", bytes_);
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  return bytes == bytes_ ? result<void>{} : remap(bytes);
}

result<void> shared_memory::remap(std::uint64_t bytes) {
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

std::uint64_t shared_memory::backed(int descriptor) {
  constexpr std::uint64_t block = 512; // whatever st_blksize says
  struct stat about {};
  return fstat(descriptor, &about) == 0 ? static_cast<std::uint64_t>(about.st_blocks) * block : 0;
}

std::uint64_t shared_memory::size(int descriptor) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
}

result<void> shared_memory::populate(std::uint64_t bytes, const std::atomic<bool>& stop,
                                     const std::function<void()>& after_step) const {
  const auto end = std::min(bytes, bytes_);
  for (std::uint64_t at = 0; at < end && !stop; at += populate_step) {
    const auto made =
        make_pages_huge_if_possible(data_ + at, std::min(populate_step, end - at), stop);
    if (!made)
      return refused("filling", bytes);
    if (!*made)
      return {};
    if (after_step)
      after_step();
  }
  return {};
}

result<bool> shared_memory::make_pages(std::uint64_t from, std::uint64_t bytes) const {
  const auto begin = std::min(from, bytes_);
  const std::atomic<bool> never{false};
  const auto made =
      make_pages_huge_if_possible(data_ + begin, std::min(bytes, bytes_ - begin), never);
  return made ? result<bool>(*made) : tl::make_unexpected(refused("filling", bytes).value());
}

} // namespace troupe::os
