#include "actors/master/recovery/elasticity.hpp"

#include "actors/master/recovery/world_sizes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe::actors;
using numbers = std::vector<std::int64_t>;
using rules = elasticity_config::rules;
using variant = elasticity_config::variant;

namespace {

elasticity_config config(std::int64_t cap, numbers micros, std::int64_t min, std::int64_t max,
                         variant which = variant::capped) {
  elasticity_config c;
  c.version = rules::v0_1;
  c.max_train_batch_size = cap;
  c.micro_batch_sizes = std::move(micros);
  c.min_gpus = min;
  c.max_gpus = max;
  c.which = which;
  return c;
}

elasticity_config by_node(elasticity_config c, std::int64_t per_node, std::int64_t parallel) {
  c.version = rules::v0_2;
  c.num_gpus_per_node = per_node;
  c.model_parallel_size = parallel;
  return c;
}

std::string answer(const elasticity_config& c, std::uint64_t workers = 1) {
  const auto e = elasticity::make(c);
  if (!e)
    return e.error().what;
  const auto b = e->batch_for(workers);
  return fmt::format("{}: {}{}", b.batch, fmt::join(b.counts, " "),
                     b.micro ? fmt::format(", micro {}", *b.micro) : "");
}

std::string allowed(const elasticity_config& c, std::uint64_t up_to) {
  const auto e = elasticity::make(c);
  numbers all;
  for (std::uint64_t n = 1; n <= up_to; ++n)
    if (e->allows(n))
      all.push_back(static_cast<std::int64_t>(n));
  return fmt::format("{}", fmt::join(all, " "));
}

} // namespace

/// The expected values come from DeepSpeed's own functions.
TEST_SUITE("elasticity 0.1") {
  TEST_CASE("DeepSpeed's own example") {
    CHECK(answer(config(10'000, {8, 12, 16, 17}, 32, 1'500)) ==
          "9792: 32 34 36 48 51 64 68 72 96 102 136 144 153 192 204 272 288 306 408 576 612 816 "
          "1224");
  }

  TEST_CASE("1, 2 and 4 workers: what no unit of nodes can express") {
    const auto c = config(8, {4, 2}, 1, 4);
    CHECK(answer(c) == "8: 1 2 4");
    CHECK(allowed(c, 20) == "1 2 4");
  }

  TEST_CASE("a common multiple beyond the cap: kept once, dropped today") {
    const auto both = [](std::int64_t cap, const numbers& micros, std::int64_t max) {
      return std::pair{answer(config(cap, micros, 1, max, variant::uncapped)),
                       answer(config(cap, micros, 1, max))};
    };
    CHECK(both(32, {1, 2, 3, 7}, 1'500) ==
          std::pair<std::string, std::string>{"42: 1 2 3 6 7 14 21 42", "24: 1 2 3 4 6 8 12 24"});
    CHECK(both(100, {8, 10, 12}, 10'000) ==
          std::pair<std::string, std::string>{"120: 1 2 3 4 5 6 10 12 15", "96: 1 2 3 4 6 8 12"});
    CHECK(both(4, {1, 2, 3, 4}, 4) ==
          std::pair<std::string, std::string>{"12: 1 2 3 4", "4: 1 2 4"});
    CHECK(both(27, {1, 2, 3, 4}, 4) ==
          std::pair<std::string, std::string>{"24: 1 2 3 4", "24: 1 2 3 4"});
  }

  TEST_CASE("no world within the bounds") {
    CHECK(answer(config(8, {4, 2}, 9, 20)) == "8: ");
    CHECK(allowed(config(8, {4, 2}, 9, 20), 30) == "");
  }

  TEST_CASE("micro batches without a multiple of any sane size") {
    CHECK(answer(config(2'000'000, {999'983, 999'979, 999'961}, 1, 10)) == "1999966: 1 2");
  }
}

TEST_SUITE("elasticity 0.2") {
  TEST_CASE("whole nodes, model-parallel: regular worlds, and others with a batch of their own") {
    const auto c = by_node(config(10'000, {8, 12, 16, 17}, 32, 1'500), 8, 4);
    CHECK(answer(c, 16) == "9996: 4, micro 17");
    auto older = c;
    older.which = variant::uncapped;
    CHECK(answer(older, 16) == "9996: 4, micro 16");
    CHECK(answer(older, 64) == "8640: 8 10 12 16 18 20 24 30 36 40 48 54 60 72 80 90 108 120 144 "
                               "180 216 240 270 360");
    older = by_node(config(2'000, {2, 4, 6}, 8, 512, variant::uncapped), 8, 2);
    CHECK(answer(older, 40).find("1920: ") == 0);
    CHECK(answer(older, 40).find("240, micro 6") != std::string::npos);
    CHECK(answer(older, 56) == "1960: 28");
    CHECK(answer(older, 72) == "1944: 36");
    const auto regular = by_node(config(2'000, {2, 4, 6}, 8, 512), 8, 2);
    CHECK(answer(regular, 32).find("1920: 4 8 12 16 20 24 32 40 48 60 64 80 96 120 160 192 240") ==
          0);
  }

  TEST_CASE("without model parallelism") {
    const auto c = by_node(config(10'000, {8, 12, 16, 17}, 32, 1'500), 8, 1);
    CHECK(answer(c, 16) == "9984: 16, micro 16");
    CHECK(answer(c, 64) == "7680: 32 40 48 64 80 96 120 128 160 192 240 320 480 640 960, micro 12");
  }

  TEST_CASE("no world beyond the bounds, and none that splits a model") {
    const auto c = by_node(config(2'000, {2, 4, 6}, 8, 64), 8, 2);
    const auto e = elasticity::make(c);
    CHECK(e->allows(32));
    CHECK_FALSE(e->allows(33));
    CHECK_FALSE(e->allows(0));
  }
}

TEST_SUITE("elasticity: what contradicts itself") {
  TEST_CASE("one line each") {
    CHECK(answer(config(0, {2}, 1, 4)).find("elasticity: max_train_batch_size is 0") == 0);
    CHECK(answer(config(8, {}, 1, 4)) == "elasticity: micro_batch_sizes is empty");
    CHECK(answer(config(8, {2, 0}, 1, 4)) ==
          "elasticity: 0 among micro_batch_sizes is no size of a batch");
    CHECK(answer(config(8, {2}, 5, 4)) == "elasticity: max_gpus is 4, less than min_gpus, 5");
    CHECK(answer(config(8, {9}, 1, 4)) ==
          "elasticity: 9 among micro_batch_sizes is more than max_train_batch_size, 8");
    CHECK(answer(by_node(config(8, {4}, 1, 4), 4, 1)) ==
          "elasticity: 4 among micro_batch_sizes is more than max_train_batch_size for one node's "
          "share, 2");
    CHECK(answer(by_node(config(8, {1}, 1, 4), 8, 16)) ==
          "elasticity: num_gpus_per_node, 8, is no multiple of model_parallel_size, 16");
    auto c = config(8, {2}, 1, 4);
    c.model_parallel_size = 4;
    CHECK(answer(c) == "elasticity: version 0.1 knows no model_parallel_size");
  }
}

TEST_SUITE("world_sizes") {
  world_sizes sizes(std::uint32_t min, std::uint32_t max, std::uint32_t unit = 1) {
    world_sizes s;
    s.nodes_min = min;
    s.nodes_max = max;
    s.unit = unit;
    return s;
  }
  std::uint32_t of(const world_sizes& s, std::size_t nodes, std::uint32_t slots = 1) {
    return s.largest_of(std::vector<std::uint32_t>(nodes, slots));
  }

  TEST_CASE("from MIN to MAX") {
    CHECK(of(sizes(2, 4), 1) == 0);
    CHECK(of(sizes(2, 4), 3) == 3);
    CHECK(of(sizes(2, 4), 9) == 4);
    CHECK(of(sizes(1, 4), 0) == 0);
  }

  TEST_CASE("whole units") {
    CHECK(of(sizes(2, 7, 2), 5) == 4);
    CHECK(of(sizes(2, 7, 2), 9) == 6);
    CHECK(of(sizes(3, 7, 2), 3) == 0);
    CHECK(sizes(3, 7, 2).least(1) == 4);
    CHECK(sizes(3, 7, 2).most(1) == 6);
    CHECK(sizes(5, 5, 2).most(1) == 0);
    CHECK(sizes(5, 5, 2).least(1) == 0);
  }

  TEST_CASE("with an elasticity config the number of workers counts, not of nodes") {
    auto s = sizes(1, 4);
    s.elastic = *elasticity::make(config(8, {4, 2}, 1, 4));
    CHECK(of(s, 3) == 2);
    CHECK(of(s, 4) == 4);
    CHECK(of(s, 3, 2) == 2);
    CHECK(of(s, 1, 3) == 0);
    CHECK(s.largest_of({3, 1, 4}) == 2);
    CHECK(s.most(2) == 2);
    CHECK(s.least(3) == 0);
  }
}
