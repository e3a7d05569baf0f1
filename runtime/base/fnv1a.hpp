#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// The 64-bit hash FNV-1a (draft-eastlake-fnv): the same on every machine and in every build.
/// It tells mistakes apart, not attacks: a text with a given hash is easy to make.
class fnv1a {
 public:
  void take(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  void take(std::string_view text) {
    for (const unsigned char c : text)
      take(c);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

} // namespace troupe
