#include "topology/tree_files.hpp"

#include "topology/limits.hpp"
#include "topology/located_json.hpp"
#include "topology/rank_order.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::topology;

namespace {

std::string wrong_lines(const std::string& text) {
  const auto read = tree_of_lines(text);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().what.find('\n') == std::string::npos);
  return read.error().what;
}

std::string wrong_json(const std::string& text) {
  const auto read = tree_of_json(text);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().what.find('\n') == std::string::npos);
  return read.error().what;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0)
    all += text;
  return all;
}

} // namespace

TEST_CASE("the guide's ConfigMap") {
  const auto tree = tree_of_lines("asw-0 psw-0 192.168.0.0\nasw-1 psw-0 192.168.0.1\n"
                                  "asw-2 psw-0 192.168.0.2\nasw-3 psw-0 192.168.0.3\n"
                                  "asw-0 psw-0 192.168.0.4\nasw-1 psw-0 192.168.0.5\n"
                                  "asw-2 psw-0 192.168.0.6\nasw-3 psw-0 192.168.0.7\n"
                                  "asw-0 psw-0 192.168.0.8\nasw-1 psw-0 192.168.0.9");
  REQUIRE(tree.has_value());
  CHECK(tree->levels() == 2);
  CHECK(tree->at(3).switches == std::vector<std::string>{"psw-0", "asw-3"});
  rank_request wanted;
  for (std::size_t node = 0; node < 10; ++node)
    wanted.nodes.push_back("192.168.0." + std::to_string(node));
  const auto made = arrange(*tree, wanted);
  REQUIRE(made.has_value());
  CHECK(made->levels[1].before.ring == 10);
  CHECK(made->levels[1].after.ring == 4);
}

TEST_CASE("lines with blanks, none, and those that are wrong") {
  const auto tree = tree_of_lines("\n  a\tp   n1 \r\n\r\na p n2\n\n");
  REQUIRE(tree.has_value());
  CHECK(tree->size() == 2);
  CHECK(tree->at(0).node == "n1");
  CHECK(tree_of_lines("")->size() == 0);
  CHECK(wrong_lines("a p n1\n\na p\n") == "line 3: expected three words, 'asw psw ip', found 2");
  CHECK(wrong_lines("a p n1 x y") == "line 1: expected three words, 'asw psw ip', found more");
  CHECK(wrong_lines("a p n1\nb p n2\nc p n1\nwrong") == "line 3: node n1 is on line 1 already");
  CHECK(wrong_lines("a p n\x01") == "line 1: a node's name has control characters");
  CHECK(wrong_lines("a p " + std::string(300, 'n')).find("line 1: a node's name has 300") == 0);
  CHECK(wrong_lines(std::string(limits::topology_text_max + 1, ' ')) ==
        "it has 67108865 bytes; 67108864 are allowed");
  std::string many;
  for (std::size_t node = 0; node <= limits::nodes_max; ++node)
    many += "a p n" + std::to_string(node) + "\n";
  CHECK(wrong_lines(many) == "line 16385: more than 16384 nodes");
}

TEST_CASE("a tree of any depth") {
  const auto tree = tree_of_json(R"({
    "psw-0": {"asw-0": ["n1", "n2"],
              "asw-1": ["n3"]},
    "psw-1": ["n4", {"asw-0": ["n5"]}], "psw-2": {}})");
  REQUIRE(tree.has_value());
  CHECK(tree->levels() == 2);
  CHECK(tree->size() == 5);
  CHECK(tree->at(2).switches == std::vector<std::string>{"psw-0", "asw-1"});
  CHECK(tree->at(3).switches == std::vector<std::string>{"psw-1"});
  CHECK(tree->at(4).switches == std::vector<std::string>{"psw-1", "asw-0"});
  CHECK(tree_of_json(R"(["n1", "n2"])")->levels() == 0);
  CHECK(tree_of_json("{}")->size() == 0);
  const auto deep = [](std::size_t switches) {
    return repeated("{\"s\":", switches) + "[\"n\"]" + repeated("}", switches);
  };
  CHECK(tree_of_json(deep(16))->levels() == 16);
  CHECK(wrong_json(deep(17)) == "line 1: 17 switches are above node n; 16 are allowed");
  const auto listed = repeated("[{\"s\":", 16) + "[\"n\"]" + repeated("}]", 16);
  CHECK(tree_of_json(listed)->levels() == 16);
}

TEST_CASE("trees that are wrong, by their lines") {
  CHECK(wrong_json("{\"a\":\n[\"n1\",\n\"n2\",\n\"n1\"]}") ==
        "line 4: node n1 is on line 2 already");
  CHECK(wrong_json("{\"a\":\n[1]}") ==
        "line 2: expected a node's name, a list or an object of switches");
  CHECK(wrong_json("{\n\n\"a\": \"n1\"}") ==
        "line 3: what hangs from switch 'a' must be a list, or an object of further switches");
  CHECK(wrong_json("{\"a\": [],\n\"b\": [],\n\"a\": []}") == "line 3: 'a' is on line 1 already");
  CHECK(wrong_json("\"n\"") == "line 1: expected a list or an object of switches");
  CHECK(wrong_json("{\"a\":\n[\"\"]}") ==
        "line 2: a node's name has 0 characters; 1 to 255 are allowed");
  CHECK(wrong_json("{\"\": [\"n\"]}").find("line 1: the name of a switch above node n has 0") == 0);
}

TEST_CASE("what is no JSON") {
  CHECK(wrong_json("{\n\"a\": [\n}").find("line 3: is no JSON: ") == 0);
  CHECK(wrong_json("").find("line 1: is no JSON: ") == 0);
  CHECK(wrong_json("{\"a\": [\"n\"").find("line 2: is no JSON: ") == 0);
  CHECK(wrong_json("[]\n\n[]").find("line 3: is no JSON: ") == 0);
  CHECK(wrong_json("[]x").find("line 1: is no JSON: ") == 0);
  CHECK(wrong_json("[\"\xff\"]").find("line 1: is no JSON: ") == 0);
  CHECK(wrong_json(std::string("[\0]", 3)).find("line 1: is no JSON: ") == 0);
  CHECK(wrong_json(repeated("[", 100'000)).find("line 1: is no JSON: ") == 0);
  CHECK(wrong_json("[\n\"a\\nb\"]") == "line 2: a text has control characters");
  CHECK(wrong_json("[\"" + std::string(256, 'x') + "\"]") ==
        "line 1: a text has more than 255 characters");
  CHECK(wrong_json("[" + repeated("1,", limits::topology_values_max) + "1]") ==
        "line 1: more than 2097152 values");
  CHECK(wrong_json(std::string(limits::topology_text_max + 1, ' ')) ==
        "it has 67108865 bytes; 67108864 are allowed");
}

TEST_CASE("every value knows its line") {
  const auto read =
      located_json("{\"a\": 1,\n \"b\"\n: [true,\n-2\n,\"x\\u00e9\"], \"c\": 1.5}\n\n");
  REQUIRE(read.has_value());
  const auto& members = read->inside;
  REQUIRE(members.size() == 3);
  CHECK(members[0].line == 1);
  CHECK(members[0].number == 1);
  CHECK(members[1].name == "b");
  CHECK(members[1].line == 3);
  CHECK(members[1].inside[0].line == 3);
  CHECK(members[1].inside[1].line == 4);
  CHECK(members[1].inside[1].number == -2);
  CHECK(members[1].inside[2].line == 5);
  CHECK(members[1].inside[2].text == "x\xc3\xa9");
  CHECK(members[2].is == json_value::kind::fraction);
}
