#include "probe/collective_values.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace troupe::probe;

TEST_SUITE("values of a collective") {
  TEST_CASE("sums over all ranks are exact, and one wrong value is noticed") {
    for (const std::uint32_t ranks : {1u, 2u, 16u, 1'000u}) {
      CAPTURE(ranks);
      const collective_values values(ranks);
      constexpr std::size_t count = 1'003;
      std::vector<float> sums(count, 0);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto own = values.own(rank, count);
        for (std::size_t i = 0; i < count; ++i)
          sums[i] += own[i];
      }
      CHECK(values.is_reduced(sums.data(), count));
      sums[count - 1] += 1;
      CHECK_FALSE(values.is_reduced(sums.data(), count));
    }
  }

  TEST_CASE("of the most ranks that there may be a sum is exact as well") {
    constexpr std::uint32_t ranks = 640'000;
    const collective_values values(ranks);
    float sum = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      sum += values.own(rank, 1).front();
    CHECK(values.is_reduced(&sum, 1));
  }

  TEST_CASE("blocks of ranks in another order are noticed") {
    const collective_values values(3);
    std::vector<float> gathered;
    for (const std::uint32_t rank : {0u, 1u, 2u})
      for (const auto value : values.own(rank, 40))
        gathered.push_back(value);
    CHECK(values.is_gathered(gathered.data(), 40));
    std::swap_ranges(gathered.begin(), gathered.begin() + 40, gathered.begin() + 40);
    CHECK_FALSE(values.is_gathered(gathered.data(), 40));
  }
}
