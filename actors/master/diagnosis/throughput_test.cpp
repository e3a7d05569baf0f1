#include "actors/master/diagnosis/throughput.hpp"

#include "actors/limits.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;

namespace {

/// A job whose worlds train at given speeds.
struct job {
  throughput core;
  instant now{};

  /// So long; what was told meanwhile, a line each.
  std::string runs(double steps_per_second, duration how_long) {
    std::string told;
    const auto began = now;
    for (; now - began < how_long; now += 500ms) {
      const auto seconds = std::chrono::duration<double>(now - began).count();
      const auto c = core.add(now, static_cast<std::uint64_t>(seconds * steps_per_second));
      if (c)
        told += comparison_in_words(*c) + "\n";
    }
    return told;
  }
  std::string runs_on(std::uint32_t nodes, double steps_per_second, duration how_long = 5min) {
    core.world(nodes);
    return runs(steps_per_second, how_long);
  }
};

} // namespace

TEST_SUITE("throughput: what worlds of different sizes do") {
  TEST_CASE("a larger one that does less than a smaller one did is told once") {
    job j;
    CHECK(j.runs_on(2, 10) == "");
    CHECK(j.runs_on(4, 4) == "4 nodes make 4 steps a second, 2 made 10: the larger world does less "
                             "as a whole (16 steps of nodes a second instead of 20)\n");
    REQUIRE(j.core.measured());
    CHECK(j.core.measured()->nodes == 4);
    CHECK(j.core.measured()->steps == doctest::Approx(4).epsilon(0.05));
  }

  TEST_CASE("steps that take longer are usual, as long as all together do more") {
    job j;
    j.runs_on(2, 10);
    CHECK(j.runs_on(4, 6) == "");
  }

  TEST_CASE("what speeds scatter by is nothing") {
    job j;
    j.runs_on(2, 10);
    CHECK(j.runs_on(4, 4.9) == "");
  }

  TEST_CASE("a smaller one is never compared with a larger one") {
    job j;
    j.runs_on(4, 10);
    CHECK(j.runs_on(2, 1) == "");
  }

  TEST_CASE("of several the one that did the most is named") {
    job j;
    j.runs_on(1, 30);
    j.runs_on(2, 20);
    j.runs_on(3, 9);
    CHECK(j.runs_on(4, 5).find("2 made 20") != std::string::npos);
  }

  TEST_CASE("the first steps of a world do not count") {
    job j;
    j.runs_on(2, 10);
    j.core.world(4);
    // Kernels are compiled: nearly nothing is made for as long as it takes.
    j.runs(1.0, 25s);
    CHECK(j.runs(10, 5min) == "");
  }

  TEST_CASE("one window that was disturbed does not make a world slow") {
    job j;
    j.runs_on(2, 10);
    CHECK(j.runs_on(4, 10, 90s) == "");
    CHECK(j.runs(1, 40s) == "");
    CHECK(j.runs(10, 5min) == "");
  }

  TEST_CASE("the newest world of a size is what counts") {
    job j;
    j.runs_on(2, 100);
    j.runs_on(2, 10); // another part of the training
    CHECK(j.runs_on(4, 8) == "");
  }

  TEST_CASE("nothing is known of what was short, slow or not seen to make steps") {
    job j;
    j.runs_on(2, 10, 40s);
    CHECK_FALSE(j.core.measured());
    j.core.world(0);
    CHECK(j.runs(10, 5min) == "");
    CHECK_FALSE(j.core.measured());
    CHECK(j.runs_on(4, 0) == "");
    CHECK_FALSE(j.core.measured());
  }

  TEST_CASE("it knows only so many sizes") {
    job j;
    for (std::uint32_t nodes = 1; nodes <= limits::speeds_known_max + 5; ++nodes)
      j.runs_on(nodes, 10);
    // The first ones are forgotten, the newest is not.
    CHECK(
        j.runs_on(static_cast<std::uint32_t>(limits::speeds_known_max) + 6, 0.5).find(" made 10") !=
        std::string::npos);
  }
}
