#include "worker/collectives/trampolines.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <string>

using namespace troupe::worker;

namespace {

struct entered {
  std::size_t index = 0;
  void* first = nullptr;
  void* second = nullptr;
  int times = 0;
};
entered last;
std::array<void*, trampolines_max> originals{};

/// Uses every register that a trampoline has to keep for the function.
double spoil(double by) {
  volatile double kept[16];
  for (int i = 0; i < 16; ++i)
    kept[i] = by * i + 0.5;
  double sum = 0;
  for (const auto& each : kept)
    sum += each;
  return sum;
}

struct large {
  std::array<long, 6> values{};
  std::string text;
};

long of_numbers(long a, int b, const char* c, long d, long e, long f, long g, long h, long i,
                double j, float k, double l, double m, double n, double o, double p, double q,
                double r) {
  return a + 2 * b + 3 * c[0] + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i +
         static_cast<long>(10 * j + 11 * static_cast<double>(k) + 12 * l + 13 * m + 14 * n +
                           15 * o + 16 * p + 17 * q + 18 * r);
}

large of_object(const long* self, double factor, std::string text) {
  large made;
  for (std::size_t i = 0; i < made.values.size(); ++i)
    made.values[i] = static_cast<long>(static_cast<double>(*self) * factor) + static_cast<long>(i);
  made.text = std::move(text) + "!";
  return made;
}

int that_throws(int what) {
  if (what > 0)
    throw std::runtime_error("from behind a trampoline");
  return what;
}

template<class Function>
Function through(std::size_t index, Function original) {
  originals[index] = reinterpret_cast<void*>(original);
  return reinterpret_cast<Function>(trampoline(index));
}

} // namespace

void* troupe_trampoline_entered(std::size_t index, void* first, void* second) {
  last = {index, first, second, last.times + 1};
  (void)spoil(static_cast<double>(index));
  return originals[index];
}

TEST_CASE("a function behind a trampoline gets all of its arguments") {
  const auto call = through(5, of_numbers);
  const auto now = [](auto f) {
    return f(1, 2, "c", 4, 5, 6, 7, 8, 9, 1.5, 2.5f, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5);
  };
  CHECK(now(call) == now(of_numbers));
  CHECK(last.index == 5);
  CHECK(last.first == reinterpret_cast<void*>(1));
}

TEST_CASE("an object is answered where the caller wants it, and the receiver is found") {
  long self = 21;
  const auto call = through(trampolines_max - 1, of_object);
  const auto made = call(&self, 2.0, "a text that is longer than a short one");
  CHECK(made.values[5] == 47);
  CHECK(made.text == "a text that is longer than a short one!");
  CHECK(last.index == trampolines_max - 1);
#if defined(__x86_64__)
  CHECK(last.second == &self);
#else
  CHECK(last.first == &self);
#endif
}

TEST_CASE("an exception passes by a trampoline") {
  const auto call = through(0, that_throws);
  CHECK(call(-3) == -3);
  CHECK_THROWS_AS(call(1), std::runtime_error);
}

TEST_CASE("a trampoline may stand for a member function, and there are so many") {
  for (std::size_t i = 0; i < trampolines_max; ++i)
    CHECK(reinterpret_cast<std::uintptr_t>(trampoline(i)) % 2 == 0);
  CHECK(trampoline(trampolines_max) == nullptr);
}
