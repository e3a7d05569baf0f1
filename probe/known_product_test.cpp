#include "probe/known_product.hpp"

#include <doctest/doctest.h>

#include <limits>

using troupe::probe::known_product;

TEST_SUITE("a product that is known") {
  /// The plain way.
  std::vector<float> product_of(const known_product& p) {
    const auto n = p.size();
    std::vector<float> c(n * n);
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t row = 0; row < n; ++row)
          c[column * n + row] += static_cast<float>(p.left()[k * n + row]) *
                                 static_cast<float>(p.right()[column * n + k]);
    return c;
  }

  TEST_CASE("the right one is told from one with a single wrong value") {
    for (const std::size_t n : {1u, 2u, 7u, 64u, 100u}) {
      CAPTURE(n);
      const known_product known(n);
      auto c = product_of(known);
      CHECK(known.is(c.data()));
      for (const auto at : {std::size_t{0}, n * n / 2, n * n - 1})
        for (const float wrong :
             {c[at] + 1, c[at] - 1, c[at] + 0.0625f, std::numeric_limits<float>::quiet_NaN(),
              std::numeric_limits<float>::infinity()}) {
          const auto right = c[at];
          c[at] = wrong;
          CHECK(!known.is(c.data()));
          c[at] = right;
        }
    }
  }

  TEST_CASE("nothing and another product are wrong") {
    const known_product known(32);
    CHECK(!known.is(std::vector<float>(32 * 32).data()));
    const auto c = product_of(known);
    for (const std::size_t other : {1u, 7u, 31u}) {
      auto swapped = c;
      // The first row in which they differ.
      std::size_t row = 0;
      while (swapped[row] == swapped[other * 32 + row])
        ++row;
      std::swap(swapped[row], swapped[other * 32 + row]);
      CHECK(!known.is(swapped.data()));
    }
  }

  TEST_CASE("entries are small, and all of them occur") {
    const known_product known(64);
    std::vector<int> seen(5);
    for (const auto* matrix : {&known.left(), &known.right()})
      for (const auto entry : *matrix) {
        REQUIRE((entry >= -2 && entry <= 2));
        ++seen[static_cast<std::size_t>(entry + 2)];
      }
    for (const auto count : seen)
      CHECK(count > 1000);
    CHECK(known.left() != known.right());
    CHECK(known.operations() == 2.0 * 64 * 64 * 64);
  }
}
