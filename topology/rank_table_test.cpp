#include "topology/rank_table.hpp"

#include "topology/compressed_text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::topology;

namespace {

const std::string first_version = R"({
 "status": "completed",
 "server_list": [{
   "device": [{
     "device_id": "0", "device_ip": "192.168.101.1", "rank_id": "0"
   }, {
     "device_id": "1", "device_ip": "192.168.101.2", "rank_id": "1"
   }],
   "server_id": "s0",
   "host_ip": "10.0.0.1",
   "container_ip": "192.168.149.1",
   "hardware_type": "800I-A2-32G"
 }, {
   "device": [{
     "device_id": "0", "device_ip": "192.168.102.1", "rank_id": "2"
   }],
   "server_id": "s1"
 }],
 "server_count": "2",
 "version": "1.0"
})";

const std::string super_pods = R"({
 "status": "completed",
 "server_list": [
  {"device": [{"device_id": "0", "device_ip": "192.168.1.1", "super_device_id": "37748736",
     "rank_id": "0", "device_port": "16666", "backup_device_ip": "192.168.1.2",
     "backup_device_port": "16667"}],
   "server_id": "s0"},
  {"device": [{"device_id": "0", "device_ip": "192.168.1.3", "super_device_id": "38600711",
     "rank_id": "1"}],
   "server_id": "s1"},
  {"device": [{"device_id": "0", "device_ip": "192.168.1.4", "super_device_id": "38600712",
     "rank_id": "2"}],
   "server_id": "s2"}
 ],
 "server_count": "3",
 "version": "1.2",
 "super_pod_list": [
  {"super_pod_id": "0", "server_list": [{"server_id": "s0"}, {"server_id": "s2"}]},
  {"super_pod_id": "1", "server_list": [{"server_id": "s1"}]}
 ]
})";

const std::string second_version = R"({
 "status": "completed", "version": "2.0", "rank_count": 2,
 "rank_list": [
  {"rank_id": 0, "local_id": 0, "device_id": 7, "level_list": [
    {"net_layer": 0, "net_instance_id": "rack", "net_type": "TOPO_FILE_DESC", "net_attr": "",
     "rank_addr_list": [
      {"addr_type": "EID", "addr": "000a", "ports": ["0/1", "0/2"], "plane_id": "1"}]},
    {"net_layer": 1, "net_instance_id": "hall", "net_type": "CLOS", "net_attr": "x",
     "rank_addr_list": []}]},
  {"rank_id": 1, "local_id": 1, "device_id": 6, "level_list": []}]
})";

rank_table read(const std::string& text) {
  auto table = rank_table_of(text);
  if (!table)
    FAIL(table.error().what);
  return *table;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

/// What is said of the text once this part of it is another.
std::string wrong(const std::string& text, const std::string& what, const std::string& with) {
  const auto table = rank_table_of(replaced(text, what, with));
  REQUIRE_FALSE(table.has_value());
  CHECK(table.error().what.find('\n') == std::string::npos);
  return table.error().what;
}

} // namespace

TEST_CASE("version 1.0") {
  const auto table = read(first_version);
  CHECK(table.version == rank_table_version::v1_0);
  CHECK(table.completed);
  REQUIRE(table.servers.size() == 2);
  CHECK(table.servers[0].server_id == "s0");
  CHECK(table.servers[0].host_ip == "10.0.0.1");
  CHECK(table.servers[0].container_ip == "192.168.149.1");
  CHECK(table.servers[0].hardware_type == "800I-A2-32G");
  REQUIRE(table.servers[0].devices.size() == 2);
  CHECK(table.servers[0].devices[1].device_id == 1);
  CHECK(table.servers[0].devices[1].device_ip == "192.168.101.2");
  CHECK(table.servers[1].devices[0].rank == 2);
  const auto tree = tree_of(table);
  REQUIRE(tree.has_value());
  CHECK(tree->levels() == 0);
  CHECK(tree->find("s1") == 1u);
}

TEST_CASE("version 1.2: super pods are what servers hang from") {
  const auto table = read(super_pods);
  CHECK(table.version == rank_table_version::v1_2);
  const auto& device = table.servers[0].devices[0];
  CHECK(device.super_device_id == "37748736");
  CHECK(device.device_port == "16666");
  CHECK(device.backup_device_ip == "192.168.1.2");
  CHECK(device.backup_device_port == "16667");
  const auto tree = tree_of(table);
  REQUIRE(tree.has_value());
  CHECK(tree->group(1, 0) == tree->group(1, 2));
  CHECK(tree->group(1, 0) != tree->group(1, 1));
}

TEST_CASE("version 2.0") {
  const auto table = read(second_version);
  CHECK(table.version == rank_table_version::v2_0);
  REQUIRE(table.devices.size() == 2);
  CHECK(table.devices[0].device_id == 7);
  CHECK(table.devices[1].local_id == 1);
  REQUIRE(table.devices[0].networks.size() == 2);
  const auto& network = table.devices[0].networks[0];
  CHECK_FALSE(network.clos);
  CHECK(network.net_instance_id == "rack");
  REQUIRE(network.addresses.size() == 1);
  CHECK(network.addresses[0].addr_type == "EID");
  CHECK(network.addresses[0].addr == "000a");
  CHECK(network.addresses[0].ports == std::vector<std::string>{"0/1", "0/2"});
  CHECK(network.addresses[0].plane_id == "1");
  CHECK(table.devices[0].networks[1].clos);
  CHECK(table.devices[0].networks[1].net_layer == 1);
  CHECK(tree_of(table).error().what == "a rank table of version 2.0 names no servers");
}

TEST_CASE("what is written is what was read, compressed or not") {
  for (const auto& text : {first_version, super_pods, second_version}) {
    const auto written = text_of(read(text));
    CHECK(text_of(read(written)) == written);
    CHECK(text_of(read(*compressed(text))) == written);
  }
  // Every member that was there is there.
  for (const auto& [text, values] :
       {std::pair{first_version, std::vector{"192.168.101.2", "s1", "10.0.0.1", "192.168.149.1",
                                             "800I-A2-32G", "\"server_count\":\"2\""}},
        std::pair{super_pods, std::vector{"37748736", "16666", "192.168.1.2", "16667",
                                          "\"super_pod_id\":\"1\",\"server_list\":[\n{"}},
        std::pair{second_version, std::vector{"\"rank_count\":2", "TOPO_FILE_DESC", "CLOS",
                                              "[\"0/1\",\"0/2\"]", "EID", "\"net_attr\":\"x\""}}})
    for (const auto* value : values)
      CHECK(text_of(read(text)).find(value) != std::string::npos);
}

TEST_CASE("a table that is not completed says only that") {
  const auto table = read(R"({"version": "1.0", "status": "initializing"})");
  CHECK_FALSE(table.completed);
  CHECK(table.servers.empty());
  CHECK(tree_of(table).error().code == errc::unavailable);
  CHECK(text_of(table).find("\"status\":\"initializing\"") != std::string::npos);
  CHECK_FALSE(read(text_of(table)).completed);
}

TEST_CASE("servers' tables that are wrong") {
  CHECK(wrong(first_version, "\"1.0\"", "\"1.1\"") ==
        "line 20: version '1.1' is not known; 1.0, 1.2 and 2.0 are");
  CHECK(wrong(first_version, "completed", "done") ==
        "line 2: status is 'done'; expected initializing or completed");
  CHECK(wrong(first_version, "\"server_count\": \"2\"", "\"server_count\": \"3\"") ==
        "line 19: 'server_count' is 3, and 2 are there");
  CHECK(wrong(first_version, "\"server_count\": \"2\"", "\"server_count\": 2") ==
        "line 19: 'server_count' of a rank table is no text");
  CHECK(wrong(first_version, "192.168.102.1", "192.168.101.1") ==
        "line 15: address 192.168.101.1 is on line 5 already");
  CHECK(wrong(first_version, "\"s1\"", "\"s0\"") == "line 13: server s0 is on line 3 already");
  CHECK(wrong(first_version, "\"device_id\": \"1\"", "\"device_id\": \"0\"") ==
        "line 6: device 0 is on line 4 already");
  CHECK(wrong(first_version, "\"rank_id\": \"2\"", "\"rank_id\": \"1\"") ==
        "line 15: rank 1 is on line 7 already");
  CHECK(wrong(first_version, "\"rank_id\": \"2\"", "\"rank_id\": \"3\"") ==
        "line 3: of 3 ranks, rank 2 is missing");
  for (const auto* number : {"", "x", "-1", "1.5", "4294967296", "99999999999999999999999"})
    CHECK(
        wrong(first_version, "\"rank_id\": \"2\"", std::string("\"rank_id\": \"") + number + '"') ==
        std::string("line 15: 'rank_id' of a device is '") + number + "', no number");
  CHECK(wrong(first_version, "\"rank_id\": \"2\"", "\"rank\": \"2\"") ==
        "line 14: a device has no 'rank_id'");
  CHECK(wrong(first_version, "\"server_id\": \"s1\"", "\"server_id\": 1") ==
        "line 17: 'server_id' of a server is no text");
  CHECK(rank_table_of("{}").error().what == "line 1: a rank table has no 'status'");
  CHECK(rank_table_of("[]").error().what == "it is neither a JSON object nor base64");
}

TEST_CASE("super pods that are wrong") {
  CHECK(wrong(super_pods, "[{\"server_id\": \"s1\"}]", "[{\"server_id\": \"s7\"}]") ==
        "line 19: server s7 is not in 'server_list'");
  CHECK(wrong(super_pods, "[{\"server_id\": \"s1\"}]", "[]") ==
        "line 8: server s1 is in no super pod");
  CHECK(wrong(super_pods, "[{\"server_id\": \"s1\"}]", "[{\"server_id\": \"s0\"}]") ==
        "line 19: server s0 is on line 18 already");
  CHECK(wrong(super_pods, "\"super_pod_id\": \"1\"", "\"super_pod_id\": \"0\"") ==
        "line 19: super pod 0 is on line 18 already");
  CHECK(wrong(super_pods, "\"super_device_id\": \"38600711\",", "") ==
        "line 8: a device has no 'super_device_id'");
}

TEST_CASE("tables of version 2.0 that are wrong") {
  CHECK(wrong(second_version, "\"rank_count\": 2", "\"rank_count\": \"2\"") ==
        "line 2: 'rank_count' of a rank table is no whole number");
  CHECK(wrong(second_version, "\"rank_count\": 2", "\"rank_count\": 1") ==
        "line 2: 'rank_count' is 1, and 2 are there");
  CHECK(wrong(second_version, "\"rank_id\": 1", "\"rank_id\": 0") ==
        "line 10: rank 0 is on line 4 already");
  CHECK(wrong(second_version, "\"rank_id\": 1", "\"rank_id\": 5") ==
        "line 3: of 2 ranks, rank 1 is missing");
  CHECK(wrong(second_version, "\"rank_id\": 1", "\"rank_id\": -1") ==
        "line 10: 'rank_id' of a rank is -1; 0 to 4294967295 are allowed");
  CHECK(wrong(second_version, "CLOS", "MESH") ==
        "line 8: net_type is 'MESH'; expected TOPO_FILE_DESC or CLOS");
  CHECK(wrong(second_version, "\"net_layer\": 1", "\"net_layer\": 0") ==
        "line 8: layer 0 is on line 5 already");
  CHECK(wrong(second_version, "\"0/2\"", "2") == "line 7: a port of an address is no text");
}
