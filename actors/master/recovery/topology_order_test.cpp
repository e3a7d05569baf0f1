#include "actors/master/recovery/topology_order.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr instant began{};

candidate node(const node_name& name, std::vector<std::string> switches = {},
               const std::string& address = "192.0.2.1") {
  static std::uint64_t arrival = 0;
  candidate one;
  one.node = name;
  one.address = address;
  one.slots = 2;
  one.arrival = ++arrival;
  one.switches = std::move(switches);
  return one;
}

topology_answer file_of(std::vector<topology::place> places) {
  auto tree = topology::network_tree::of(std::move(places));
  REQUIRE(tree.has_value());
  return {std::make_shared<const topology::network_tree>(std::move(*tree)), "racks.json", "lines"};
}

topology_options with_file() {
  topology_options o;
  o.file = true;
  return o;
}

/// "a(0,1) c(2,3)", and what was told.
std::string order_of(topology_order::world world) {
  std::string text;
  for (const auto& s : world.seats)
    text += fmt::format("{}{}({})", text.empty() ? "" : " ", s.node, s.first_rank);
  return text;
}

std::map<node_name, std::uint32_t> ranks(const std::vector<node_name>& by_rank) {
  std::map<node_name, std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank)
    all[by_rank[rank]] = rank;
  return all;
}

/// The nodes of the guide, as they say it themselves.
std::vector<candidate> guide() {
  std::vector<candidate> nodes;
  for (int n = 0; n < 10; ++n)
    nodes.push_back(node(fmt::format("n{}", n), {"psw-0", fmt::format("asw-{}", n % 4)}));
  return nodes;
}

} // namespace

TEST_SUITE("topology_order") {
  TEST_CASE("the guide's ten nodes: the ring is crossed 4 times instead of 10") {
    topology_order order({}, 1, began);
    const auto made = order.arrange(guide(), {});
    CHECK(order_of(made) == "n0(0) n4(2) n8(4) n1(6) n5(8) n9(10) n2(12) n6(14) n3(16) n7(18)");
    REQUIRE(made.told.has_value());
    CHECK(made.told->severity == log::level::notice);
    CHECK(made.told->name == "ranks_by_topology");
    CHECK(made.told->text ==
          "ranks follow the network: of 10 nodes the ring leaves a switch 0,4 times instead of "
          "0,10 (at best 0,4; from the top level down)");
    CHECK(std::get<std::string>(made.told->fields[0].second) == "0,10");
    CHECK(std::get<std::string>(made.told->fields[1].second) == "0,4");
    CHECK(std::get<std::string>(made.told->fields[2].second) == "0,4");
    CHECK_FALSE(std::get<bool>(made.told->fields[3].second));
  }

  TEST_CASE(
      "pods are known by their machine's name or address, as the guide's ConfigMap has them") {
    std::vector<topology::place> places;
    std::vector<candidate> pods;
    for (int n = 0; n < 10; ++n) {
      const auto machine = fmt::format("192.168.0.{}", n);
      places.push_back({machine, {"psw-0", fmt::format("asw-{}", n % 4)}});
      pods.push_back(node(fmt::format("p{}", n), {}, fmt::format("10.244.{}.7", n)));
      pods.back().machine = {fmt::format("gpu-{}", n), machine};
    }
    topology_order order(with_file(), 1, began);
    order.known(file_of(places));
    const auto made = order.arrange(pods, {});
    CHECK(order_of(made) == "p0(0) p4(2) p8(4) p1(6) p5(8) p9(10) p2(12) p6(14) p3(16) p7(18)");
    // The pod's own name and address come first.
    pods[3].address = "192.168.0.0";
    pods[3].machine.clear();
    CHECK(order_of(order.arrange(pods, {})).find("p0(0) p3(2)") == 0);
  }

  TEST_CASE("nodes are listed by rank with their addresses, and again when that has changed") {
    topology_order order({}, 1, began);
    auto nodes = guide();
    nodes[4].address = "192.0.2.4";
    nodes[4].machine = {"gpu-4", "192.168.0.4"};
    const auto made = order.arrange(nodes, {});
    REQUIRE(made.list.size() == 1);
    CHECK(made.list[0].severity == log::level::notice);
    CHECK(made.list[0].text.find("nodes of rank 0 to 9: n0 (192.0.2.1), n4 (192.0.2.4 on "
                                 "gpu-4/192.168.0.4), n8 (192.0.2.1), n1 (") == 0);
    const auto held = ranks({"n0", "n4", "n8", "n1", "n5", "n9", "n2", "n6", "n3", "n7"});
    CHECK(order.arrange(nodes, held).list.empty());
    nodes[0].address = "192.0.2.9";
    CHECK(order.arrange(nodes, held).list.size() == 1);
  }

  TEST_CASE("a long list has several lines; without a network it is for those that ask") {
    topology_order order({}, 1, began);
    std::vector<candidate> nodes;
    for (int n = 0; n < 40; ++n)
      nodes.push_back(node(fmt::format("n{}", n)));
    const auto made = order.arrange(nodes, {});
    REQUIRE(made.list.size() == 3);
    CHECK(made.list[2].text.find("nodes of rank 32 to 39: n32 (") == 0);
    CHECK(made.list[2].severity == log::level::info);
    CHECK(order.arrange({node("a")}, {}).list.empty());
  }

  TEST_CASE("units stay whole") {
    topology_order order({}, 2, began);
    const auto made = order.arrange({node("a", {"x"}), node("b", {"y"}), node("c", {"y"}),
                                     node("d", {"x"}), node("e", {"z"}), node("f", {"z"})},
                                    {});
    CHECK(order_of(made) == "a(0) d(2) b(4) c(6) e(8) f(10)");
  }

  TEST_CASE("nothing is known of the network: as without it, and no word") {
    topology_order order({}, 1, began);
    const auto made = order.arrange({node("a"), node("b"), node("c"), node("d")}, {});
    CHECK(order_of(made) == "a(0) b(2) c(4) d(6)");
    CHECK_FALSE(made.told.has_value());
  }

  TEST_CASE("two nodes have no order that is better") {
    topology_order order({}, 1, began);
    const auto made = order.arrange({node("a", {"x"}), node("b", {"y"})}, ranks({"b", "a"}));
    CHECK(order_of(made) == "b(0) a(2)");
    CHECK_FALSE(made.told.has_value());
  }

  TEST_CASE("ranks of a scheduler are the order that nodes would have, and no more") {
    topology_order order({}, 1, began);
    auto nodes = guide();
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      nodes[n].wanted_rank = n;
      nodes[n].rank_is_found = true;
    }
    const auto made = order.arrange(nodes, {});
    CHECK(order_of(made) == "n0(0) n4(2) n8(4) n1(6) n5(8) n9(10) n2(12) n6(14) n3(16) n7(18)");
  }

  TEST_CASE("a node that asks for a rank: all is left as it is, with one notice") {
    topology_order order({}, 1, began);
    auto nodes = guide();
    nodes[7].wanted_rank = 3;
    const auto made = order.arrange(nodes, {});
    CHECK(order_of(made) == "n0(0) n1(2) n2(4) n7(6) n3(8) n4(10) n5(12) n6(14) n8(16) n9(18)");
    REQUIRE(made.told.has_value());
    CHECK(made.told->severity == log::level::notice);
    CHECK(made.told->text == "ranks do not follow the network: node n7 asks for rank 3 "
                             "(--node-rank)");
    CHECK(order.arrange(nodes, {}).told->severity == log::level::info);
  }

  TEST_CASE("survivors keep their ranks, and the newcomer has the hole") {
    topology_order order({}, 1, began);
    auto nodes = guide();
    const auto first = order.arrange(nodes, {});
    std::vector<node_name> by_rank;
    for (const auto& s : first.seats)
      by_rank.push_back(s.node);
    nodes[4] = node("new", {"psw-0", "asw-0"});
    const auto second = order.arrange(nodes, ranks(by_rank));
    CHECK(order_of(second) == "n0(0) new(2) n8(4) n1(6) n5(8) n9(10) n2(12) n6(14) n3(16) n7(18)");
    CHECK(second.told->text.find("; the nodes beside the one that was replaced kept their ranks") !=
          std::string::npos);
    // Of a rack of its own: one crossing more than the optimum is allowed for it, by default.
    nodes[4] = node("far", {"psw-0", "asw-9"});
    CHECK(order_of(order.arrange(nodes, ranks(by_rank))).find("n0(0) far(2) n8(4)") == 0);
    topology_order strict({false, 60s, 0}, 1, began);
    CHECK(order_of(strict.arrange(nodes, ranks(by_rank))) ==
          "n0(0) n8(2) far(4) n1(6) n5(8) n9(10) n2(12) n6(14) n3(16) n7(18)");
  }

  TEST_CASE("rank 0 stays where it was") {
    topology_order order({}, 1, began);
    std::vector<candidate> nodes{node("a", {"x"}), node("b", {"y"}), node("c", {"x"}),
                                 node("d", {"y"})};
    CHECK(order_of(order.arrange(nodes, ranks({"b", "a", "d", "c"}))) == "b(0) d(2) a(4) c(6)");
  }

  TEST_CASE("a file says more than a node, and finds it by its name, host or address") {
    topology_order order(with_file(), 1, began);
    const auto read = order.known(file_of({{"host-a.example", {"x"}},
                                           {"b", {"y"}},
                                           {"10.0.0.3", {"x"}},
                                           {"d", {"y"}, {"10.0.0.4"}}}));
    CHECK(read.severity == log::level::info);
    CHECK(read.text == "racks.json is taken for lines: 4 nodes below 1 levels of switches");
    const auto made =
        order.arrange({node("host-a-4711", {"y"}), node("b.example"), node("c", {"y"}, "10.0.0.3"),
                       node("z", {"x"}, "10.0.0.4"), node("elsewhere")},
                      {});
    CHECK(order_of(made) == "host-a-4711(0) c(2) b.example(4) z(6) elsewhere(8)");
    CHECK(made.told->text.find("; where 1 of them hang is not known") != std::string::npos);
  }

  TEST_CASE("a short name that two nodes have says nothing") {
    topology_order order(with_file(), 1, began);
    order.known(file_of({{"a.one", {"x"}}, {"a.two", {"y"}}}));
    const auto made = order.arrange({node("a"), node("b"), node("c")}, {});
    CHECK(order_of(made) == "a(0) b(2) c(4)");
    CHECK(made.told->severity == log::level::warning);
    CHECK(made.told->text == "ranks do not follow the network (--topology racks.json): above none "
                             "of 3 nodes it has a switch");
  }

  TEST_CASE("a file that could not be used: one warning, and the order that ranks had") {
    topology_order order(with_file(), 1, began);
    CHECK(order.awaited());
    const auto told =
        order.known({failure(errc::invalid, "line 3: expected three words"), "racks", ""});
    CHECK(told.severity == log::level::warning);
    CHECK(told.name == "topology_unusable");
    CHECK(told.text ==
          "ranks do not follow the network (--topology racks): line 3: expected three words");
    CHECK_FALSE(order.awaited());
    CHECK(order_of(order.arrange({node("a"), node("b"), node("c")}, {})) == "a(0) b(2) c(4)");
  }

  TEST_CASE("units that do not divide the nodes, and switches that are no names") {
    topology_order order({}, 2, began);
    const auto made = order.arrange({node("a", {"x"}), node("b", {"y"}), node("c", {"x"})}, {});
    CHECK(order_of(made) == "a(0) b(2) c(4)");
    CHECK(made.told->severity == log::level::warning);
    const auto bad =
        order.arrange({node("a", {std::string(300, 'x')}), node("b", {"y"}), node("c", {"x"})}, {});
    CHECK(order_of(bad) == "a(0) b(2) c(4)");
    CHECK(bad.told->text.find("has 300 characters") != std::string::npos);
  }

  TEST_CASE("a disk that does not answer is waited for no longer than a little more") {
    topology_order order(with_file(), 1, began);
    CHECK(order.until() == began + 65s);
    CHECK_FALSE(order.over(began + 64s).has_value());
    const auto told = order.over(began + 65s);
    REQUIRE(told.has_value());
    CHECK(told->severity == log::level::warning);
    CHECK_FALSE(order.awaited());
    CHECK_FALSE(order.over(began + 66s).has_value());
  }
}
