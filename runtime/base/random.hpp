#pragma once

#include <cstdint>
#include <random>

namespace troupe {

/// Seeded randomness with the same sequence on every standard library (std distributions differ
/// between them).
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t next() { return engine_(); }

  /// Uniform in [0, bound); `bound` > 0. The bias of the modulo is below 2^-32 for the bounds in
  /// use here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  bool chance(double probability) { return unit() < probability; }

 private:
  std::mt19937_64 engine_;
};

} // namespace troupe
