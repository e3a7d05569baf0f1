#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace troupe::os {

/// The memory of another process, or what a test takes for it.
class memory_port {
 public:
  virtual ~memory_port() = default;
  /// All of it or nothing. False where nothing is mapped; never an exception, never a signal.
  virtual bool read(std::uint64_t address, void* into, std::size_t bytes) = 0;
  /// What was read before may have changed: it is not to be answered again from what is kept.
  virtual void refresh() {}
};

/// One value; false and unchanged if it cannot be read.
template<class T>
bool read_value(memory_port& memory, std::uint64_t address, T& into) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  if (!memory.read(address, &value, sizeof value))
    return false;
  into = value;
  return true;
}

} // namespace troupe::os
