#include "actors/master/diagnosis/wait_graph.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace troupe;
using namespace troupe::actors;
using diag::collective;

namespace {

using ranks = std::vector<std::uint32_t>;

/// A job whose ranks are in collectives of groups.
struct job {
  explicit job(std::uint32_t size) : all(size) {}

  std::uint32_t group(const std::string& name, std::uint32_t members) {
    return names.number_of(name, members, members);
  }
  /// Each of them has entered and left so many; waits if it has left fewer.
  communicator_row& at(std::uint32_t rank, std::uint32_t group, std::uint64_t entered,
                       std::uint64_t left, collective kind = collective::all_reduce) {
    communicator_row row;
    row.communicator = group;
    row.entered = entered;
    row.left = left;
    row.kind = kind;
    row.bytes = 1024;
    row.in_it = 10s + std::chrono::seconds(rank);
    all[rank].rows.push_back(row);
    return all[rank].rows.back();
  }
  void at(std::initializer_list<std::uint32_t> which, std::uint32_t group, std::uint64_t entered,
          std::uint64_t left) {
    for (const auto r : which)
      at(r, group, entered, left);
  }
  wait_graph graph() const { return graph_of(all, names); }

  std::vector<rank_facts> all;
  communicator_names names;
};

} // namespace

TEST_CASE("nothing waits") {
  CHECK(!job(0).graph().waits);
  CHECK(!job(3).graph().waits);
  job j(3);
  j.at({0, 1, 2}, j.group("world", 3), 10, 10);
  const auto g = j.graph();
  CHECK(!g.waits);
  CHECK((g.outside.empty() && g.inside.empty() && g.out_of_order.empty() && g.in_circle.empty()));
}

TEST_CASE("ranks that have not entered are waited for by those that have") {
  job j(5);
  const auto world = j.group("world", 5);
  j.at({0, 3, 4}, world, 10, 9);
  j.at({1, 2}, world, 9, 9);
  const auto g = j.graph();
  CHECK(g.outside == ranks{1, 2});
  CHECK(g.inside.empty());
  REQUIRE(g.waits);
  CHECK(g.waits->communicator == world);
  CHECK(g.waits->number == 10);
  CHECK(g.waits->kind == collective::all_reduce);
  CHECK(g.waits->ranks == ranks{0, 3, 4});
  CHECK(g.waits->shortest == 10s);
  CHECK(g.unseen == 0);
}

TEST_CASE("all have entered, and none leaves: the bytes do not arrive") {
  job j(3);
  j.at({0, 1, 2}, j.group("world", 3), 10, 9);
  const auto g = j.graph();
  CHECK(g.outside.empty());
  CHECK(g.inside == ranks{0, 1, 2});
}

TEST_CASE("a rank that others wait for is itself in a collective that all of its group entered") {
  job j(4);
  const auto tp = j.group("tp", 2), world = j.group("world", 4);
  j.at(0, tp, 5, 5);
  j.at(1, tp, 5, 4);
  j.at({0, 2, 3}, world, 3, 2);
  j.at(1, world, 2, 2);
  const auto g = j.graph();
  CHECK(g.outside.empty());
  CHECK(g.inside == ranks{1});
  CHECK(g.other.communicator == tp);
  CHECK(g.other.ranks == ranks{1});
  REQUIRE(g.waits);
  CHECK(g.waits->communicator == world);
  CHECK(g.waits->ranks == ranks{0, 2, 3});
}

TEST_CASE("behind a chain of groups is the one that waits for nothing") {
  job j(4);
  const auto a = j.group("a", 2), b = j.group("b", 2), c = j.group("c", 2);
  j.at(0, a, 1, 0), j.at(1, a, 0, 0); // 0 waits for 1,
  j.at(1, b, 1, 0), j.at(2, b, 0, 0); // 1 for 2,
  j.at(2, c, 1, 0), j.at(3, c, 0, 0); // 2 for 3
  const auto g = j.graph();
  CHECK(g.outside == ranks{3});
  REQUIRE(g.waits);
  CHECK(g.waits->communicator == c);
}

TEST_CASE(
    "a rank that is stopped within a collective is waited for as well as the one it waits for") {
  job j(4);
  const auto world = j.group("world", 4);
  j.at({0, 3}, world, 10, 9);
  j.at(1, world, 9, 8);
  j.at(2, world, 8, 8);
  CHECK(j.graph().outside == ranks{2});
  j.all[1].state = 'T';
  CHECK(j.graph().outside == ranks{1, 2});
}

TEST_CASE("the collective that is named is one of the culprit's, even where more wait elsewhere") {
  job j(4);
  const auto tp = j.group("tp", 2), pp = j.group("pp", 3);
  j.at(0, tp, 7, 6), j.at(1, tp, 6, 6);
  j.at({2, 3}, pp, 9, 8);
  j.at(0, pp, 8, 8);
  const auto g = j.graph();
  CHECK(g.outside == ranks{1});
  REQUIRE(g.waits);
  CHECK(g.waits->communicator == tp);
  CHECK(g.waits->ranks == ranks{0});
}

TEST_CASE("another collective in the same place of the order") {
  job j(4);
  const auto world = j.group("world", 4);
  j.at({0, 1, 3}, world, 10, 9);
  j.at(2, world, 10, 9, collective::barrier);
  const auto g = j.graph();
  CHECK(g.out_of_order == ranks{2});
  REQUIRE(g.waits);
  CHECK(g.waits->ranks == ranks{0, 1, 3});
  CHECK(g.waits->kind == collective::all_reduce);
  CHECK(g.other.ranks == ranks{2});
  CHECK(g.other.kind == collective::barrier);
  CHECK((g.outside.empty() && g.inside.empty()));
}

TEST_CASE("all_reduce of another size is another collective; of others the sizes differ") {
  job j(3);
  const auto world = j.group("world", 3);
  j.at({0, 1}, world, 10, 9);
  j.at(2, world, 10, 9).bytes = 512;
  CHECK(j.graph().out_of_order == ranks{2});
  for (auto& f : j.all)
    f.rows.front().kind = collective::all_gather;
  CHECK(j.graph().out_of_order.empty());
  CHECK(j.graph().inside == ranks{0, 1, 2});
}

TEST_CASE("two ranks are enough to differ, whatever the others do") {
  job j(3);
  const auto world = j.group("world", 3);
  j.at(0, world, 10, 9);
  j.at(1, world, 10, 9, collective::barrier);
  j.at(2, world, 9, 9);
  CHECK(j.graph().out_of_order == ranks{1});
}

TEST_CASE("the order is not compared of what is not settled, not counted or not known") {
  const auto differs = [](auto change) {
    job j(2);
    const auto world = j.group("world", 2);
    j.at(0, world, 10, 9);
    change(j.at(1, world, 10, 9, collective::barrier));
    return !j.graph().out_of_order.empty();
  };
  CHECK(differs([](auto&) {}));
  CHECK(!differs([](auto& row) { row.in_it = 100ms; }));            // being entered just now
  CHECK(!differs([](auto& row) { row.entered = row.left = 9; }));   // somewhere else
  CHECK(!differs([](auto& row) { row.entered = 11; }));             // two at once
  CHECK(!differs([](auto& row) { row.kind = collective::other; })); // it is not known which
  CHECK(!differs([](auto& row) { row.kind = collective::recv; }));
  // Where ends are not seen, it counts once the rank stands.
  CHECK(!differs([](auto& row) { row.ends_known = false; }));
}

TEST_CASE("ranks that wait for each other: the smaller side of the circle") {
  job j(3);
  const auto a = j.group("a", 3), b = j.group("b", 3);
  j.at({0, 1}, a, 5, 4), j.at(2, a, 4, 4);
  j.at({0, 1}, b, 7, 7), j.at(2, b, 8, 7);
  const auto g = j.graph();
  CHECK((g.outside.empty() && g.inside.empty()));
  CHECK(g.in_circle == ranks{2});
  REQUIRE(g.waits);
  CHECK(g.waits->communicator == a);
  CHECK(g.waits->ranks == ranks{0, 1});
  CHECK(g.other.communicator == b);
  CHECK(g.other.ranks == ranks{2});
}

TEST_CASE("where both sides of a circle are as large nothing says which is wrong") {
  job j(2);
  const auto a = j.group("a", 2), b = j.group("b", 2);
  j.at(0, a, 5, 4), j.at(1, a, 4, 4);
  j.at(0, b, 7, 7), j.at(1, b, 8, 7);
  CHECK(j.graph().in_circle == ranks{0, 1});
}

TEST_CASE("a rank without a row of the group of all ranks has not entered it") {
  job j(5);
  const auto world = j.group("world", 5);
  j.at({0, 1, 3}, world, 1, 0);
  j.at(4, world, 1, 1);
  const auto g = j.graph();
  CHECK(g.outside == ranks{2});
  CHECK(g.unseen == 1);
}

TEST_CASE("numbers of sends and receives are not compared: the rank is one that waits in nothing") {
  job j(3);
  const auto pipe = j.group("pipe", 3);
  j.at(0, pipe, 30, 29, collective::recv);
  j.at(1, pipe, 50, 50, collective::send);
  j.at(2, pipe, 20, 19, collective::recv);
  const auto g = j.graph();
  CHECK(g.outside == ranks{1});
  CHECK(g.inside.empty());
}

TEST_CASE(
    "where ends are not seen the last collective counts, if the others have not come so far") {
  job j(3);
  const auto world = j.group("world", 3);
  j.at(0, world, 10, 0).ends_known = false;
  j.at(1, world, 10, 0).ends_known = false;
  j.at(2, world, 9, 0).ends_known = false;
  CHECK(!j.graph().waits); // they may be out of it
  for (auto& f : j.all) {
    f.limit = 1s;
    f.idle = 2s;
  }
  const auto g = j.graph();
  CHECK(g.outside == ranks{2});
  REQUIRE(g.waits);
  CHECK(g.waits->number == 10);
  CHECK(g.waits->ranks == ranks{0, 1});
}
