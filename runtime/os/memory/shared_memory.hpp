#pragma once

#include "runtime/base/result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe::os {

/// Memory that processes share and that has no name: it is there as long as anybody has its
/// descriptor or a mapping of it, and no user but those it was handed to can open it.
class shared_memory {
 public:
  shared_memory() = default;
  /// `name` is only for people who look at /proc. Nothing is reserved yet: pages come when they are
  /// touched. `refused` if the system does not give it.
  static result<shared_memory> create(const std::string& name, std::uint64_t bytes);
  /// Maps what another process has made, whole, be it nothing yet. Takes the descriptor.
  static result<shared_memory> adopt(int descriptor);
  /// The same; the descriptor stays the caller's.
  static result<shared_memory> share(int descriptor);

  shared_memory(shared_memory&& other) noexcept;
  shared_memory& operator=(shared_memory&& other) noexcept;
  ~shared_memory();

  char* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return data_ != nullptr; }

  /// Maps so much, with what is there; addresses change. Precondition: not less than `bytes()`.
  result<void> grow(std::uint64_t bytes);
  /// Maps as much as there is by now, if another process has changed it; addresses change.
  result<void> follow();
  /// Gives the memory back; the descriptor stays.
  result<void> clear();

  /// What the descriptor says of its size to a process that opens it as a file. What lies behind
  /// that must not be touched, though it stays mapped here. Precondition: at most `bytes()`.
  result<void> show(std::uint64_t bytes) const;

  /// Makes the pages of the first `bytes` be there, huge ones where the system has some, so that
  /// the first writes do not wait for them. Ends early when `stop` becomes true, or where
  /// less is shown. An error instead of a signal where there is no memory.
  /// `after_step` is called each time that some more are there.
  result<void> populate(std::uint64_t bytes, const std::atomic<bool>& stop,
                        const std::function<void()>& after_step = {}) const;
  /// The same for a part of it. False: this kernel does not do that.
  result<bool> make_pages(std::uint64_t from, std::uint64_t bytes) const;
  /// Bytes for which the kernel has given pages, whichever process has touched them.
  std::uint64_t backed() const { return backed(descriptor_); }
  static std::uint64_t backed(int descriptor);
  /// What its size is by now; 0 of what is no memory.
  static std::uint64_t size(int descriptor);

 private:
  result<void> remap(std::uint64_t bytes);
  shared_memory(int descriptor, char* data, std::uint64_t bytes)
      : descriptor_(descriptor), data_(data), bytes_(bytes) {}

  int descriptor_ = -1;
  char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

} // namespace troupe::os
