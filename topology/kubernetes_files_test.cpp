#include "topology/kubernetes_files.hpp"

#include "topology/limits.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

using switches = std::vector<std::string>;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::string node(const std::string& name, const std::string& address, const std::string& labels) {
  return R"({"apiVersion": "v1", "kind": "Node", "metadata": {"annotations": {"a": "{\n}\n"},
  "labels": {)" +
         labels + R"(}, "name": ")" + name + R"("}, "status": {"addresses": [
  {"address": ")" +
         address + R"(", "type": "InternalIP"}, {"address": ")" + name +
         R"(", "type": "Hostname"}]}})";
}

std::string hypernode(const std::string& name, int tier, const std::string& members) {
  return R"({"kind": "HyperNode", "metadata": {"name": ")" + name + R"("},
  "spec": {"tier": )" +
         std::to_string(tier) + R"(, "tierName": "t", "members": [)" + members + "]}}";
}

std::string list_of(const std::vector<std::string>& items) {
  std::string text = R"({"apiVersion": "v1", "kind": "List", "items": [)";
  for (const auto& item : items)
    text += (&item == items.data() ? "\n" : ",\n") + item;
  return text + "\n]}";
}

const std::string exact = R"({"type": "Node", "selector": {"exactMatch": {"name": "n0"}}})";
const std::string by_pattern =
    R"({"type": "Node", "selector": {"regexMatch": {"pattern": "^n[12]$"}}})";
const std::string by_label =
    R"({"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r9"}}}})";
const std::string leaves =
    R"({"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^leaf-"}}})";

const std::vector<std::string> three_nodes = {
    node("n0", "10.0.0.1", R"("zone": "z0", "rack": "r0")"),
    node("n1", "10.0.0.2", R"("zone": "z0", "rack": "r1")"),
    node("n2", "10.0.0.3", R"("rack": "r9")")};

std::vector<std::string> with_nodes(std::vector<std::string> hypernodes) {
  hypernodes.insert(hypernodes.end(), three_nodes.begin(), three_nodes.end());
  return hypernodes;
}

result<network_tree> read_hypernodes(const std::string& text) {
  const auto document = located_json(text, prose::passed_over);
  REQUIRE_MESSAGE(document.has_value(), text);
  return tree_of_hypernodes(*document);
}

result<network_tree> read_nodes(const std::string& text, const std::vector<std::string>& keys) {
  const auto document = located_json(text, prose::passed_over);
  REQUIRE_MESSAGE(document.has_value(), text);
  return tree_of_nodes(*document, keys);
}

std::string wrong(const std::string& text) {
  const auto read = read_hypernodes(text);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().what.find('\n') == std::string::npos);
  return read.error().what;
}

} // namespace

TEST_CASE("nodes by their labels: a node hangs from the switches up to the first that it lacks") {
  const auto tree = read_nodes(list_of(three_nodes), {"zone", "rack"});
  REQUIRE(tree.has_value());
  CHECK(tree->at(0).switches == switches{"z0", "r0"});
  CHECK(tree->at(1).switches == switches{"z0", "r1"});
  CHECK(tree->at(2).switches == switches{});
  CHECK(tree->find("10.0.0.2") == 1u);
  CHECK(tree->find("n2") == 2u);
}

TEST_CASE("nodes as the API has them: a NodeList, and one node by itself") {
  auto text = list_of(three_nodes);
  text = replaced(text, R"("kind": "List")", R"("kind": "NodeList")");
  text = replaced(text, R"("kind": "Node", )", "");
  REQUIRE(read_nodes(text, {"rack"}).has_value());
  CHECK(read_nodes(text, {"rack"})->size() == 3);
  CHECK(read_nodes(three_nodes[0], {"rack"})->size() == 1);
}

TEST_CASE("nodes that are refused") {
  CHECK(read_nodes(list_of(three_nodes), {"zone", "room"}).error().what ==
        "none of 3 nodes has the label 'room'");
  CHECK(read_nodes(list_of(three_nodes), {}).error().what ==
        "which labels of the nodes are switches is not said (--topology-labels KEY,…, the top of "
        "the network first)");
  CHECK(read_nodes(replaced(list_of(three_nodes), "10.0.0.2", "10.0.0.1"), {"rack"}).error().what ==
        "line 6: node 10.0.0.1 is on line 3 already");
  CHECK(read_nodes(replaced(list_of(three_nodes), R"("name": "n1")", R"("name": "n0")"), {"rack"})
            .error()
            .what == "line 6: node n0 is on line 3 already");
}

TEST_CASE("HyperNodes hang below each other, by their names, patterns and labels") {
  const auto tree = read_hypernodes(list_of(
      with_nodes({hypernode("spine", 2, leaves), hypernode("leaf-a", 1, exact + "," + by_label),
                  hypernode("leaf-b", 1, replaced(by_pattern, "[12]", "[1]"))})));
  REQUIRE(tree.has_value());
  CHECK(tree->at(0).switches == switches{"spine", "leaf-a"});
  CHECK(tree->at(1).switches == switches{"spine", "leaf-b"});
  CHECK(tree->at(2).switches == switches{"spine", "leaf-a"});
  CHECK(tree->find("10.0.0.3") == 2u);
}

TEST_CASE("HyperNodes alone: their exact members are the nodes") {
  const auto tree =
      read_hypernodes(list_of({hypernode("leaf", 1, exact + "," + replaced(exact, "n0", "n1"))}));
  REQUIRE(tree.has_value());
  CHECK(tree->size() == 2);
  CHECK(tree->at(1).node == "n1");
  CHECK(tree->at(1).switches == switches{"leaf"});
}

TEST_CASE("labels: each operator") {
  const auto by = [](const std::string& expression) {
    const auto tree = read_hypernodes(list_of(with_nodes(
        {hypernode("leaf", 1,
                   R"({"type": "Node", "selector": {"labelMatch": {"matchExpressions": [)" +
                       expression + "]}}}")})));
    REQUIRE(tree.has_value());
    std::string names;
    for (std::size_t n = 0; n < tree->size(); ++n)
      if (!tree->at(n).switches.empty())
        names += tree->at(n).node;
    return names;
  };
  CHECK(by(R"({"key": "rack", "operator": "In", "values": ["r0", "r1"]})") == "n0n1");
  CHECK(by(R"({"key": "rack", "operator": "NotIn", "values": ["r0"]})") == "n1n2");
  CHECK(by(R"({"key": "zone", "operator": "Exists"})") == "n0n1");
  CHECK(by(R"({"key": "zone", "operator": "DoesNotExist"})") == "n2");
}

TEST_CASE("HyperNodes that are wrong, by their lines") {
  const auto needs = [](const char* what) {
    return std::string("line 3: '") + what +
           "' needs the nodes and their labels in the same file: kubectl get nodes,hypernodes -o "
           "json";
  };
  CHECK(wrong(list_of({hypernode("a", 1, by_pattern)})) == needs("regexMatch"));
  CHECK(wrong(list_of({hypernode("a", 1, by_label)})) == needs("labelMatch"));
  CHECK(wrong(list_of(with_nodes({hypernode("a", 1, exact), hypernode("b", 1, exact)}))) ==
        "line 5: node n0 is below HyperNode a on line 3 already");
  CHECK(wrong(list_of({hypernode("a", 1, exact), hypernode("a", 1, exact)})) ==
        "line 4: HyperNode a is on line 2 already");
  CHECK(wrong(list_of({hypernode("top", 1, leaves), hypernode("leaf-a", 1, exact)})) ==
        "line 3: HyperNode leaf-a has tier 1, and is below top of tier 1");
  CHECK(
      wrong(list_of({hypernode(
          "top", 2, R"({"type": "HyperNode", "selector": {"exactMatch": {"name": "none"}}})")})) ==
      "line 3: HyperNode none is not in the file");
  CHECK(wrong(list_of(with_nodes({hypernode("a", 1, replaced(by_pattern, "^n[12]$", "n("))}))) ==
        "line 3: the pattern of 'regexMatch' is refused: a '(' has no ')'");
  CHECK(wrong(list_of({hypernode("a", 1, replaced(exact, "Node", "Pod"))})) ==
        "line 3: type is 'Pod'; expected Node or HyperNode");
  CHECK(wrong(list_of({hypernode("a", 1, R"({"type": "Node", "selector": {}})")})) ==
        "line 3: expected exactMatch, regexMatch or labelMatch");
  CHECK(wrong(list_of({hypernode("a", 2, replaced(leaves, "regexMatch", "labelMatch"))})) ==
        "line 3: labelMatch is for members of the type Node");
  CHECK(wrong(list_of({replaced(hypernode("a", 1, exact), R"("tier": 1, )", "")})) ==
        "line 3: the spec of a HyperNode has no 'tier'");
}

TEST_CASE("the same member twice in one HyperNode does no harm") {
  const auto tree = read_hypernodes(list_of(with_nodes({hypernode("a", 1, exact + "," + exact)})));
  REQUIRE(tree.has_value());
  CHECK(tree->at(0).switches == switches{"a"});
}
