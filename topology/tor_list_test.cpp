#include "topology/tor_list.hpp"

#include "topology/compressed_text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::topology;

namespace {

std::string list_of(const std::string& third_switch) {
  return R"({"server_list": [
 {"pod_name": "job-worker-0", "server_id": "10.0.0.1", "device": [
   {"device_id": "0", "device_ip": "29.1.0.1", "rank_id": "0", "tor_ip": "7.0.0.1", "tor_port": "1"},
   {"device_id": "1", "device_ip": "29.1.0.2", "tor_ip": "7.0.0.1", "tor_port": "2"}]},
 {"pod_name": "job-worker-1", "server_id": "10.0.0.2", "device": [
   {"device_id": "0", "device_ip": "29.1.0.3", "tor_ip": ")" +
         third_switch + R"(", "tor_port": "1"}]},
 {"pod_name": "job-worker-2", "server_id": "10.0.0.3", "device": [
   {"device_id": "0", "device_ip": "29.1.0.4", "tor_ip": "7.0.0.1", "tor_port": "3"}]}
]})";
}

std::string wrong(const std::string& what, const std::string& with) {
  auto text = list_of("7.0.0.2");
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  const auto read = tree_of_tor_list(text.replace(at, what.size(), with));
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().what.find('\n') == std::string::npos);
  return read.error().what;
}

} // namespace

TEST_CASE("servers hang from the switch of their devices") {
  for (const auto& text : {list_of("7.0.0.2"), *compressed(list_of("7.0.0.2"))}) {
    const auto tree = tree_of_tor_list(text);
    REQUIRE(tree.has_value());
    CHECK(tree->size() == 3);
    CHECK(tree->levels() == 1);
    CHECK(tree->group(1, 0) == tree->group(1, 2));
    CHECK(tree->group(1, 0) != tree->group(1, 1));
    CHECK(tree->at(1).node == "10.0.0.2");
    CHECK(tree->at(1).switches == std::vector<std::string>{"7.0.0.2"});
  }
}

TEST_CASE("rails: the switches of a server's devices together") {
  const auto tree = tree_of_tor_list(R"({"server_list": [
    {"server_id": "a", "device": [{"device_ip": "1", "tor_ip": "x"}, {"device_ip": "2", "tor_ip": "y"}]},
    {"server_id": "b", "device": [{"device_ip": "3", "tor_ip": "y"}, {"device_ip": "4", "tor_ip": "x"}]},
    {"server_id": "c", "device": [{"device_ip": "5", "tor_ip": "x"}, {"device_ip": "6", "tor_ip": "z"}]}]})");
  REQUIRE(tree.has_value());
  CHECK(tree->at(0).switches == std::vector<std::string>{"x+y"});
  CHECK(tree->group(1, 0) == tree->group(1, 1));
  CHECK(tree->group(1, 0) != tree->group(1, 2));
}

TEST_CASE("lists that are wrong, by their lines") {
  CHECK(wrong("7.0.0.2", "") ==
        "line 6: a device of server 10.0.0.2 has no switch; is the annotation "
        "cce.kubectl.kubernetes.io/ascend-rank-table of its node empty?");
  CHECK(wrong("29.1.0.3", "29.1.0.2") == "line 6: address 29.1.0.2 is on line 4 already");
  CHECK(wrong("10.0.0.3", "10.0.0.1") == "line 7: node 10.0.0.1 is on line 2 already");
  CHECK(wrong("\"server_id\": \"10.0.0.3\", ", "") == "line 7: a server has no 'server_id'");
  CHECK(wrong("\"tor_ip\": \"7.0.0.2\", ", "") == "line 6: a device has no 'tor_ip'");
  CHECK(wrong("server_list", "servers") == "line 1: a list of switches has no 'server_list'");
  CHECK(tree_of_tor_list(R"({"server_list": [{"server_id": "a", "device": []}]})").error().what ==
        "line 1: server a has no devices");
  CHECK(tree_of_tor_list("!").error().what == "it is neither a JSON object nor base64");
}
