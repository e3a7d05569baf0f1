#include "topology/network_tree.hpp"

#include "topology/limits.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

std::string refusal(std::vector<place> places) {
  const auto made = network_tree::of(std::move(places));
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().what.find('\n') == std::string::npos);
  return made.error().what;
}

} // namespace

TEST_CASE("nodes share the switches that they hang from") {
  const auto made = network_tree::of({{"a", {"hall", "rack"}},
                                      {"b", {"hall", "rack"}},
                                      {"c", {"hall", "other"}},
                                      {"d", {"annex", "rack"}}});
  REQUIRE(made.has_value());
  CHECK(made->size() == 4);
  CHECK(made->levels() == 2);
  CHECK(made->group(1, 0) == made->group(1, 2));
  CHECK(made->group(1, 0) != made->group(1, 3));
  CHECK(made->group(2, 0) == made->group(2, 1));
  CHECK(made->group(2, 0) != made->group(2, 2));
  // Another rack, although it has the same name.
  CHECK(made->group(2, 0) != made->group(2, 3));
  CHECK(made->find("c") == 2u);
  CHECK_FALSE(made->find("e").has_value());
  CHECK(made->at(3).node == "d");
}

TEST_CASE("a node nearer to the top is a group of its own below") {
  const auto made = network_tree::of({{"a", {}}, {"b", {"x"}}, {"c", {"x", "y"}}, {"d", {"x"}}});
  REQUIRE(made.has_value());
  CHECK(made->group(1, 0) != made->group(1, 1));
  CHECK(made->group(1, 1) == made->group(1, 3));
  CHECK(made->group(2, 1) != made->group(2, 3));
  CHECK(made->group(2, 1) != made->group(2, 2));
}

TEST_CASE("a tree may be empty, or flat") {
  CHECK(network_tree::of({})->levels() == 0);
  const auto flat = network_tree::of({{"a", {}}, {"b", {}}});
  CHECK(flat->levels() == 0);
  CHECK(flat->find("b") == 1u);
}

TEST_CASE("what a tree may not be") {
  CHECK(refusal({{"a", {"x"}}, {"b", {}}, {"a", {"y"}}}) == "node a is there twice");
  CHECK(refusal({{"", {"x"}}}) == "a node's name has 0 characters; 1 to 255 are allowed");
  CHECK(refusal({{std::string(256, 'n'), {}}}).find("256 characters") != std::string::npos);
  CHECK(refusal({{"a", {"x", ""}}}) ==
        "the name of a switch above node a has 0 characters; 1 to 255 are allowed");
  CHECK(refusal({{"a", {std::string(256, 's')}}}).find("256") != std::string::npos);
  CHECK(refusal({{"a\nb", {}}}) == "a node's name has control characters");
  CHECK(refusal({{"a", {"\x7f"}}}) == "the name of a switch above node a has control characters");
  CHECK(refusal({{"a", std::vector<std::string>(17, "x")}}) ==
        "17 switches are above node a; 16 are allowed");
  CHECK(network_tree::of({{"a", std::vector<std::string>(16, "x")}}).has_value());

  std::vector<place> many;
  for (std::size_t node = 0; node < limits::nodes_max; ++node)
    many.push_back({std::to_string(node), {std::to_string(node % 100)}});
  CHECK(network_tree::of(many).has_value());
  many.push_back({"one more", {}});
  CHECK(refusal(many) == "the network has 16385 nodes; 16384 are allowed");
}

TEST_CASE("a node is found by each of its names, and none is another node's") {
  const auto made = network_tree::of({{"a", {}, {"10.0.0.1", "a"}}, {"b", {}, {"10.0.0.2"}}});
  REQUIRE(made.has_value());
  CHECK(made->find("10.0.0.2") == 1u);
  CHECK(made->find("a") == 0u);
  CHECK(refusal({{"a", {}, {"x"}}, {"b", {}, {"x"}}}) == "node x is there twice");
  CHECK(refusal({{"a", {}, {"b"}}, {"b", {}}}) == "node b is there twice");
  CHECK(refusal({{"a", {}, {""}}}) ==
        "a further name of node a has 0 characters; 1 to 255 are allowed");
  CHECK(refusal({{"a", {}, std::vector<std::string>(limits::node_names_max + 1, "x")}}) ==
        "node a has 17 further names; 16 are allowed");
}
