#include "runtime/base/random.hpp"
#include "topology/compressed_text.hpp"
#include "topology/name_pattern.hpp"
#include "topology/rank_table.hpp"
#include "topology/read_topology.hpp"
#include "topology/tor_list.hpp"
#include "topology/tree_files.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

const std::vector<std::string> files = {
    "asw-0 psw-0 10.0.0.1\nasw-1 psw-0 10.0.0.2\n",
    R"({"psw-0": {"asw-0": ["n1", "n2"],
    "asw-1": ["n3", {"deep": ["n4"]}]}})",
    R"({"version": "1.2", "status": "completed", "server_count": "1", "server_list": [
    {"server_id": "s0", "device": [{"device_id": "0", "device_ip": "1.1.1.1", "rank_id": "0",
    "super_device_id": "7"}]}], "super_pod_list": [{"super_pod_id": "0", "server_list":
    [{"server_id": "s0"}]}]})",
    R"({"version": "2.0", "status": "completed", "rank_count": 1, "rank_list": [{"rank_id": 0,
    "local_id": 0, "device_id": 0, "level_list": [{"net_layer": 0, "net_instance_id": "a",
    "net_type": "CLOS", "net_attr": "", "rank_addr_list": [{"addr_type": "EID", "addr": "1",
    "ports": ["0/1"], "plane_id": "1"}]}]}]})",
    R"({"server_list": [{"pod_name": "p", "server_id": "s", "device": [
    {"device_id": "0", "device_ip": "1.1.1.1", "tor_ip": "2.2.2.2", "tor_port": "1"}]}]})",
    R"({"version": "1.0", "tor_count": 1, "server_list": [
    {"tor_id": 0, "tor_ip": "t0", "server": [{"server_ip": "n1"}, {"server_ip": "n2"}]}]})",
    R"({"kind": "List", "items": [{"kind": "HyperNode", "metadata": {"name": "h"}, "spec":
    {"tier": 2, "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": "i"}}},
    {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r"}}}}]}},
    {"kind": "HyperNode", "metadata": {"name": "i"}, "spec": {"tier": 1, "members": [
    {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[0-9]{1,2}(a|b)?$"}}}]}},
    {"kind": "Node", "metadata": {"name": "n1", "labels": {"rack": "r"}}, "status":
    {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
    {"kind": "Node", "metadata": {"name": "x", "labels": {"rack": "r"}}}]})",
};

/// A byte changed, taken out or put in, or a part of the text twice or not at all.
std::string damaged(std::string text, random_source& chance) {
  for (auto times = 1 + chance.below(3); times > 0 && !text.empty(); --times) {
    const auto at = chance.below(text.size());
    const auto length = chance.below(20);
    constexpr std::string_view likely = "{}[]\":,\n\\0x- \xff\t";
    switch (chance.below(4)) {
    case 0:
      text[at] = likely[chance.below(likely.size())];
      break;
    case 1:
      text.insert(at, 1, likely[chance.below(likely.size())]);
      break;
    case 2:
      text.erase(at, length);
      break;
    default:
      text.insert(at, text.substr(at, length));
    }
  }
  return text;
}

template<class Read>
void check(const Read& read) {
  if (read)
    return;
  REQUIRE_FALSE(read.error().what.empty());
  for (const auto character : read.error().what)
    REQUIRE(static_cast<unsigned char>(character) >= 0x20);
}

} // namespace

TEST_CASE("damaged files: each reader takes them or says in one line what is wrong") {
  random_source chance(1);
  for (int round = 0; round < 3000; ++round) {
    auto text = damaged(files[chance.below(files.size())], chance);
    if (chance.chance(0.2))
      text = *compressed(text);
    if (chance.chance(0.1))
      text = damaged(text, chance);
    check(tree_of_lines(text));
    check(tree_of_json(text));
    check(tree_of_tor_list(text));
    check(read_topology(text, {}));
    check(read_topology(text, {"rack"}));
    check(name_pattern::of(text));
    const auto table = rank_table_of(text);
    check(table);
    if (table)
      check(rank_table_of(text_of(*table)));
    if (table && table->completed)
      REQUIRE(text_of(*rank_table_of(text_of(*table))) == text_of(*table));
  }
}
