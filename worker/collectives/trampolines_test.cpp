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

/// Leaves nothing in any register that a called function may use.
void spoil() {
#if defined(__x86_64__)
  asm volatile("pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm1, %%xmm1; pcmpeqd %%xmm2, %%xmm2;"
               "pcmpeqd %%xmm3, %%xmm3; pcmpeqd %%xmm4, %%xmm4; pcmpeqd %%xmm5, %%xmm5;"
               "pcmpeqd %%xmm6, %%xmm6; pcmpeqd %%xmm7, %%xmm7;"
               "mov $-1, %%rax; mov $-1, %%rdi; mov $-1, %%rsi; mov $-1, %%rdx; mov $-1, %%rcx;"
               "mov $-1, %%r8; mov $-1, %%r9; mov $-1, %%r10; mov $-1, %%r11" ::
                   : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "rax", "rdi",
                     "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11");
#elif defined(__aarch64__)
  asm volatile("movi v0.16b, #255; movi v1.16b, #255; movi v2.16b, #255; movi v3.16b, #255;"
               "movi v4.16b, #255; movi v5.16b, #255; movi v6.16b, #255; movi v7.16b, #255;"
               "mov x0, #-1; mov x1, #-1; mov x2, #-1; mov x3, #-1; mov x4, #-1; mov x5, #-1;"
               "mov x6, #-1; mov x7, #-1; mov x8, #-1; mov x16, #-1; mov x17, #-1" ::
                   : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "x0", "x1", "x2", "x3", "x4",
                     "x5", "x6", "x7", "x8", "x16", "x17");
#endif
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
  spoil();
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
