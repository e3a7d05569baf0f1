#include "ckpt/copy/stream.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::ckpt {

namespace {

#if defined(__x86_64__)

constexpr std::size_t line = 64;

/// Precondition: `to` is at a multiple of a line, `bytes` is one.
__attribute__((target("avx512f"))) void copy_lines_512(char* to, const char* from,
                                                       std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += line)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  _mm_sfence();
}

__attribute__((target("avx2"))) void copy_lines_256(char* to, const char* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += line) {
    const auto* source = reinterpret_cast<const __m256i*>(from + i);
    auto* target = reinterpret_cast<__m256i*>(to + i);
    const auto low = _mm256_loadu_si256(source), high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
  }
  _mm_sfence();
}

using copy_lines = void (*)(char*, const char*, std::size_t);

copy_lines best() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    return copy_lines_512;
  if (__builtin_cpu_supports("avx2"))
    return copy_lines_256;
  return nullptr;
}

#endif

} // namespace

void stream_copy(char* to, const char* from, std::size_t bytes) {
#if defined(__x86_64__)
  static const copy_lines lines = best();
  if (lines != nullptr && bytes >= 2 * line) {
    const auto head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
    std::memcpy(to, from, head);
    const auto middle = (bytes - head) / line * line;
    lines(to + head, from + head, middle);
    std::memcpy(to + head + middle, from + head + middle, bytes - head - middle);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

} // namespace troupe::ckpt
