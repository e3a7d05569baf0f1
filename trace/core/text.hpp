#pragma once

#include <cstdarg>
#include <cstddef>
#include <string_view>

namespace troupe::trace {

/// As substr(0, most) without its exception, which is in the library of C++.
inline std::string_view first_of(std::string_view words, std::size_t most) {
  return {words.data(), words.size() < most ? words.size() : most};
}

/// Text in memory of a given size. What does not fit is left out whole, and `full` says so.
class text {
 public:
  /// `reserved` bytes are for `end_with` alone.
  text(char* memory, std::size_t bytes, std::size_t reserved = 0)
      : memory_(memory), bytes_(bytes - reserved), reserved_(reserved) {}

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
  void add(std::string_view words);
  /// In a label of Prometheus or a string of JSON, between quotation marks that the caller writes.
  void add_escaped(std::string_view words);

  /// The last words, also of a text that is full. Precondition: shorter than `reserved`.
  void end_with(std::string_view words);

  std::string_view written() const { return {memory_, used_}; }
  bool full() const { return full_; }
  /// Forgets what was written after `bytes`.
  void cut_to(std::size_t bytes) { used_ = bytes; }

 private:
  char* memory_;
  std::size_t bytes_;
  std::size_t reserved_;
  std::size_t used_ = 0;
  bool full_ = false;
};

} // namespace troupe::trace
