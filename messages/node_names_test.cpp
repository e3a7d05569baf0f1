#include "messages/node_names.hpp"

#include "messages/kinds.hpp"
#include "messages/text.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace troupe;
using namespace troupe::messages;

namespace {

/// "other (field)", or nothing, of what node "a" says in a message of this kind.
std::string judged(const std::string& kind, const std::string& body) {
  const auto m = from_text(kind, body, stamp{"a/x", {}, {}, 1, 0});
  REQUIRE_MESSAGE(m, m.error().what);
  const auto other = speaks_for_another(*m, "a");
  return other ? other->node + " (" + other->field + ")" : "";
}

void collect_text_fields(const capnp::StructSchema& from, std::set<std::string>& all,
                         std::set<std::uint64_t>& seen) {
  if (!seen.insert(from.getProto().getId()).second)
    return;
  for (const auto f : from.getFields()) {
    auto type = f.getType();
    while (type.isList())
      type = type.asList().getElementType();
    if (type.isText())
      all.insert(std::string(from.getShortDisplayName().cStr()) + "." +
                 f.getProto().getName().cStr());
    if (type.isStruct())
      collect_text_fields(type.asStruct(), all, seen);
  }
}

template<class... Kinds>
std::set<std::string> text_fields(kind_list<Kinds...>) {
  std::set<std::string> all;
  std::set<std::uint64_t> seen;
  (collect_text_fields(capnp::Schema::from<Kinds>(), all, seen), ...);
  return all;
}

} // namespace

TEST_SUITE("node_names") {
  TEST_CASE("a node may name itself, everywhere") {
    CHECK(judged("Prepared", R"((node = "a", storePort = 1))") == "");
    CHECK(judged("Failed", R"((node = "a", failures = [(node = "a"), (node = "a")]))") == "");
    CHECK(judged("ShardReport", R"((node = "a", written = (name = "f", node = "a")))") == "");
    CHECK(judged("Goodbye", R"((reason = "b"))") == "");
  }

  TEST_CASE("another name is found at any depth") {
    CHECK(judged("Prepared", R"((node = "b"))") == "b (node)");
    CHECK(judged("Running", R"((node = "a ", pids = [1]))") == "a  (node)");
    CHECK(judged("Finished", R"((node = ""))") == " (node)");
    CHECK(judged("Failed", R"((node = "a", failures = [(node = "a"), (node = "c")]))") ==
          "c (failures.node)");
    CHECK(judged("ShardReport", R"((node = "a", written = (name = "f", node = "b")))") ==
          "b (written.node)");
    CHECK(judged("StepCommitted", R"((node = "b", sequence = 3))") == "b (node)");
    CHECK(judged("Hello", R"((node = "a", state = (failures = [(node = "b")])))") ==
          "b (state.failures.node)");
  }

  TEST_CASE("what is absent names no node") {
    CHECK(judged("ShardReport", R"((node = "a", failed = "disk full"))") == "");
    CHECK(judged("Prepared", "()") == "");
    CHECK(judged("Hello", R"((node = "a"))") == "");
  }

  TEST_CASE("no schema names a node in a field of another name") {
    // The rule finds fields by their name. Each text field whose name hints at a node is listed
    // here once, with the reason why no node may say it.
    const std::set<std::string> not_from_nodes{
        // What a member of a group saw at the other end of its link, on its own behalf.
        "GroupProbed.peer",
        // Said within the master only.
        "Finding.nodes",
    };
    std::set<std::string> suspicious;
    for (const auto& each : text_fields(all_kinds{})) {
      const auto name = each.substr(each.find('.') + 1);
      const bool hints = name.find("node") != std::string::npos ||
                         name.find("Node") != std::string::npos || name == "without" ||
                         name.find("peer") != std::string::npos ||
                         name.find("member") != std::string::npos;
      if (hints && name != "node")
        suspicious.insert(each);
    }
    CHECK(suspicious == not_from_nodes);
  }
}
