#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace troupe::ckpt {

/// Little endian, as zip has it, whatever the machine has.
template<class T>
char* put(char* to, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return to + sizeof(T);
}

/// Precondition: `from` has as many bytes as T from `at` on.
template<class T>
T take(std::string_view from, std::uint64_t at) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value =
        static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(from[at + i])) << (8 * i));
  return value;
}

inline char* put(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

} // namespace troupe::ckpt
