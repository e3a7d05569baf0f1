#include "runtime/base/random.hpp"
#include "runtime/link/link_core.hpp"
#include "tests/link/core_pair.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

using namespace troupe;
using namespace troupe::link;
using namespace troupe::testing;

namespace {

const instant start = instant{} + 1h;

std::vector<std::uint64_t> counted(std::uint64_t n) {
  std::vector<std::uint64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

} // namespace

TEST_CASE("two ends deliver everything in order over any chunking and any pauses") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    options o;
    o.credit_messages = 1 + random.below(8);
    std::array<core_end, 2> ends{
        core_end(link_core::dialling(o, start, start + o.dial_within, hello()), start),
        core_end(link_core::accepting(o, start), start)};
    std::array<std::vector<kj::byte>, 2> wires; // from end i to the other
    std::array<std::uint64_t, 2> sent{};
    std::array<std::size_t, 2> taken{};
    const std::uint64_t goal = 40;
    auto now = start;
    const auto finished = [&] {
      return ends[0].delivered.size() == goal && ends[1].delivered.size() == goal;
    };
    for (int step = 0; step < 20'000 && !finished(); ++step) {
      const auto i = random.below(2);
      auto& end = ends[i];
      now += random.below(3) == 0 ? 1ms : 0ms;
      switch (random.below(5)) {
      case 0:
        if (end.proven && sent[i] < goal)
          REQUIRE(end.send(now, numbered(++sent[i], std::string(random.below(99), 'x'))));
        break;
      case 1: {
        const auto made = end.take_output();
        wires[i].insert(wires[i].end(), made.begin(), made.end());
        break;
      }
      case 2: {
        auto& wire = wires[1 - i];
        if (!end.read || wire.empty())
          break;
        const auto n =
            static_cast<std::ptrdiff_t>(1 + random.below(std::min<std::size_t>(wire.size(), 400)));
        end.receive(now, {wire.begin(), wire.begin() + n});
        wire.erase(wire.begin(), wire.begin() + n);
        break;
      }
      case 3:
        if (taken[i] < end.delivered.size()) {
          ++taken[i];
          end.core().taken(now);
          end.act(now);
        }
        break;
      default:
        if (end.proven && end.delivered.empty() && end.core().now_in() == phase::open)
          end.open(now);
        end.tick(now);
      }
    }
    for (auto& end : ends) {
      CHECK(end.closed.empty());
      CHECK(end.delivered == counted(goal));
    }
  }
}
