#pragma once

#include "trace/core/operation.hpp"
#include "trace/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::trace {

/// A string of bounded length that needs no allocation. A longer one is cut.
template<std::size_t Bytes>
class short_string {
 public:
  void set(std::string_view words) {
    size_ = words.size() < Bytes ? words.size() : Bytes - 1;
    for (std::size_t at = 0; at < size_; ++at)
      bytes_[at] = words[at];
    bytes_[size_] = '\0';
  }
  std::string_view view() const { return {bytes_.data(), size_}; }
  const char* c_str() const { return bytes_.data(); }
  bool empty() const { return size_ == 0; }

 private:
  std::array<char, Bytes> bytes_{};
  std::size_t size_ = 0;
};

/// What the library is told by the environment. docs/tracing.md has the table.
struct settings {
  bool on = true;         ///< TROUPE_TRACE
  bool xpu_names = false; ///< TROUPE_TRACE_XPU_TIMER_NAMES
  bool verbose = false;   ///< XPU_TIMER_DEBUG_MODE
  int rank = 0, local_rank = 0, world_size = 1;
  int port = 0; ///< TROUPE_TRACE_PORT plus the local rank; 0: none
  std::uint64_t hang_timeout_ns = 300'000'000'000;
  std::uint64_t update_every_ns = 10'000'000'000;
  std::uint64_t poll_every_ns = limits::poll_ns;
  std::size_t timeline_count = 1000;
  /// One of so many calls is timed; 0: none. Prime numbers, so that in a model of equal layers each
  /// kind of call has its turn.
  std::array<std::uint32_t, operation_classes> every{1, 31, 7, 509};
  short_string<limits::path_max> metrics_directory;
  short_string<limits::path_max> timeline_directory;
  short_string<limits::name_max> job, pod_name, pod_address;
};

/// What was found wrong or is of no use here: one line each.
struct settings_notes {
  static constexpr std::size_t lines_max = 16;
  std::array<short_string<256>, lines_max> lines;
  std::size_t count = 0;
  void add(std::string_view name, std::string_view value, std::string_view what);
  void add(std::string_view line);
};

/// `value_of` is getenv, or a test's. A value that cannot be used leaves its default, with a note.
settings read_settings(const char* (*value_of)(const char* name), settings_notes& notes);

} // namespace troupe::trace
