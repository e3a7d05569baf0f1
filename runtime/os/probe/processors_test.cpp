#include "runtime/os/probe/processors.hpp"

#include "probe/known_product.hpp"
#include "runtime/os/probe/matrix_product.hpp"
#include "runtime/os/probe/timed_products.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::os;

TEST_SUITE("processors as a device") {
  TEST_CASE("they are one device, which computes") {
    processors device;
    CHECK(!device.has_accelerators());
    const auto all = device.list();
    REQUIRE(all);
    REQUIRE(all->size() == 1);
    CHECK((*all)[0].name == "cpu");
    CHECK((*all)[0].memory_bytes > 1u << 20);
    CHECK((*all)[0].memory_used_bytes == 0);
    const auto work = device.compute(0);
    REQUIRE(work);
    CHECK(work->took > 0s);
    CHECK(work->gigaflops > 0);
    MESSAGE("products: ", in_words(work->took), ", ", work->gigaflops, " GFLOP/s");
  }

  TEST_CASE("products of all sizes are right") {
    for (const std::size_t n : {1u, 3u, 16u, 33u, 100u}) {
      CAPTURE(n);
      const probe::known_product known(n);
      const std::vector<float> left(known.left().begin(), known.left().end()),
          right(known.right().begin(), known.right().end());
      std::vector<float> product(n * n);
      multiply(left.data(), right.data(), product.data(), n);
      CHECK(known.is(product.data()));
    }
  }

  TEST_CASE("nothing is between them") {
    processors device;
    CHECK(!device.copy_bandwidth(0, 1));
    CHECK(!device.channels(0, 1));
  }

  TEST_CASE("what interrupts some of the work does not count") {
    CHECK(without_interruptions({3ms, 3ms, 900ms, 3ms, 4ms}) == 15ms);
    CHECK(without_interruptions({5ms}) == 5ms);
  }
}
