#include "topology/read_topology.hpp"

#include "topology/compressed_text.hpp"
#include "topology/tor_nodes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

const std::string rank_table = R"({"version": "1.2", "status": "completed", "server_count": "1",
"server_list": [{"server_id": "s0", "host_ip": "10.0.0.1", "container_ip": "10.0.0.1", "device": [
{"device_id": "0", "device_ip": "1.1.1.1", "rank_id": "0", "super_device_id": "7"}]}],
"super_pod_list": [{"super_pod_id": "p0", "server_list": [{"server_id": "s0"}]}]})";
const std::string tor_list = R"({"server_list": [{"pod_name": "p", "server_id": "s",
"device": [{"device_id": "0", "device_ip": "1.1.1.1", "tor_ip": "2.2.2.2", "tor_port": "1"}]}]})";
const std::string tor_nodes = R"({"version": "1.0", "tor_count": 2, "server_list": [
{"tor_id": 0, "tor_ip": "t0", "server": [{"server_ip": "10.0.0.1", "npu_count": 8, "slice_id": 0},
{"server_ip": "10.0.0.2", "npu_count": 8, "slice_id": 1}]},
{"tor_id": 1, "tor_ip": "t1", "server": [{"server_ip": "10.0.0.3", "npu_count": 8, "slice_id": 0}]}
]})";
const std::string nodes =
    R"({"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n0",
"labels": {"rack": "r0"}}}]})";
const std::string hypernodes = R"({"kind": "HyperNodeList", "items": [{"metadata": {"name": "h0"},
"spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]}}]})";

topology_format format_of(const std::string& text, const std::vector<std::string>& keys = {}) {
  const auto read = read_topology(text, keys);
  REQUIRE_MESSAGE(read.has_value(), text, ": ", read ? "" : read.error().what);
  return read->taken_for;
}

error wrong(const std::string& text, const std::vector<std::string>& keys = {}) {
  const auto read = read_topology(text, keys);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().what.find('\n') == std::string::npos);
  return read.error();
}

} // namespace

TEST_CASE("a format is known by what is in the file") {
  CHECK(format_of("\n asw psw n0\n") == topology_format::lines);
  CHECK(format_of(R"({"psw": ["n0"]})") == topology_format::json_tree);
  CHECK(format_of(R"(["n0", {"status": ["n1"], "kind": {"version": ["n2"]}}])") ==
        topology_format::json_tree);
  CHECK(format_of(rank_table) == topology_format::rank_table);
  CHECK(format_of(tor_list) == topology_format::tor_list);
  CHECK(format_of(tor_nodes) == topology_format::tor_nodes);
  CHECK(format_of(hypernodes) == topology_format::hypernodes);
  CHECK(format_of(nodes, {"rack"}) == topology_format::nodes);
  for (const auto& text : {rank_table, tor_list, tor_nodes, hypernodes})
    CHECK(format_of(*compressed(text)) == format_of(text));
}

TEST_CASE("a file with nodes and HyperNodes: labels that are asked for win") {
  const auto both = R"({"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "n0",
"labels": {"rack": "r0"}}}, {"kind": "HyperNode", "metadata": {"name": "h0"},
"spec": {"tier": 1, "members": []}}]})";
  CHECK(format_of(both) == topology_format::hypernodes);
  CHECK(format_of(both, {"rack"}) == topology_format::nodes);
}

TEST_CASE("servers of a rank table are found by their addresses as well") {
  const auto read = read_topology(rank_table, {});
  REQUIRE(read.has_value());
  CHECK(read->tree.find("s0") == 0u);
  CHECK(read->tree.find("10.0.0.1") == 0u);
}

TEST_CASE("basic-tor-node-cm: servers below their switch") {
  const auto read = read_topology(tor_nodes, {});
  REQUIRE(read.has_value());
  CHECK(read->tree.size() == 3);
  CHECK(read->tree.at(1).switches == std::vector<std::string>{"t0"});
  CHECK(read->tree.group(1, 0) == read->tree.group(1, 1));
  CHECK(read->tree.group(1, 0) != read->tree.group(1, 2));
  const auto with = [](const std::string& what, const std::string& instead) {
    auto text = tor_nodes;
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), instead);
  };
  CHECK(wrong(with("10.0.0.3", "10.0.0.1")).what ==
        "taken for a basic-tor-node-cm: line 4: node 10.0.0.1 is on line 2 already");
  CHECK(wrong(with("t1", "t0")).what ==
        "taken for a basic-tor-node-cm: line 4: switch t0 is on line 2 already");
  CHECK(wrong(with("\"tor_count\": 2", "\"tor_count\": 3")).what ==
        "taken for a basic-tor-node-cm: line 1: 'tor_count' is 3, and 2 are there");
  CHECK(wrong(with("\"server_ip\": \"10.0.0.3\", ", "")).what ==
        "taken for a basic-tor-node-cm: line 4: a server has no 'server_ip'");
}

TEST_CASE("what is refused is refused with what it was taken for") {
  CHECK(wrong("asw psw n0\nasw n1\n").what.find("taken for lines 'asw psw ip': line 2: ") == 0);
  CHECK(wrong("nonsense!").what ==
        "taken for gzip in base64: it is neither a JSON object nor base64");
  CHECK(wrong("{\n \"a\": [\"n0\",\n}").what.find("taken for JSON: line 3: is no JSON") == 0);
  CHECK(wrong(R"({"psw": [7]})").what.find("taken for a JSON tree of switches: line 1: ") == 0);
  CHECK(wrong(R"({"kind": "ConfigMap", "data": {"tor_info": "{\n}"}})").what ==
        "it is a ConfigMap; expected what is in it: kubectl get configmap NAME -o "
        "jsonpath='{.data.KEY}'");
  CHECK(wrong(R"({"kind": "List", "items": [{"kind": "Pod"}]})").what ==
        "it is of Kubernetes, and has neither nodes nor HyperNodes (Pod)");
  CHECK(wrong(R"({"kind": "List", "items": []})").what.find("an empty list") != std::string::npos);
  CHECK(wrong(R"({"version": "2.0", "status": "completed", "rank_count": 0, "rank_list": []})")
            .what == "taken for a rank table: a rank table of version 2.0 names no servers");
  const std::string prose(300, 'x');
  CHECK(wrong(R"({"psw": [")" + prose + R"("]})").what.find("line 1: expected a node's name") !=
        std::string::npos);
  CHECK(wrong(R"({"version": "1.0", "status": "completed", "server_count": ")" + prose +
              R"(", "server_list": []})")
            .what == "taken for a rank table: line 1: 'server_count' of a rank table has more than "
                     "255 characters, or control characters");
}

TEST_CASE("what is to be read again: nothing yet, and a table that is not completed") {
  CHECK(wrong("").code == errc::unavailable);
  CHECK(wrong(" \n").code == errc::unavailable);
  CHECK(wrong(R"({"status": "initializing"})").code == errc::unavailable);
  CHECK(wrong(*compressed(R"({"status": "initializing", "version": "1.0"})")).code ==
        errc::unavailable);
  CHECK(wrong(R"({"status": "done"})").code == errc::invalid);
}
