#include "launch/options/options.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

machine_facts eight_cpus() {
  machine_facts m;
  m.cpus = 8;
  return m;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_SUITE("shell options") {
  shell_options look(const std::vector<std::string>& arguments,
                     const machine_facts& machine = eight_cpus()) {
    const auto p = parse_shell(arguments, machine);
    if (const auto* e = std::get_if<refusal>(&p))
      FAIL(e->what);
    return std::get<shell_options>(p);
  }
  std::string no_look(const std::vector<std::string>& arguments) {
    const auto p = parse_shell(arguments, eight_cpus());
    REQUIRE(std::holds_alternative<refusal>(p));
    return std::get<refusal>(p).what;
  }

  TEST_CASE("options stand before and behind what is to be looked at") {
    CHECK(look({"--master", "h:1", "tree"}).master == ports::endpoint{"h", 1});
    const auto o = look({"--json", "tree", "--node=n1", "--depth", "3", "--troubled"});
    CHECK(!o.master);
    CHECK((o.json && o.troubled && o.node == "n1" && o.depth == 3u && !o.watch));
  }

  TEST_CASE(
      "the master may be named by the environment; an option goes first, wherever it stands") {
    auto machine = eight_cpus();
    machine.environment = {{"TROUPE_MASTER_ADDR", "m"}, {"PET_MASTER", "other:1"}};
    CHECK(look({"tree", "--master=h:1"}, machine).master == ports::endpoint{"h", 1});
    CHECK(look({"--master=h:1", "tree", "--json"}, machine).master == ports::endpoint{"h", 1});
    machine.environment.erase("PET_MASTER");
    CHECK(look({"tree"}, machine).master->host == "m");
  }

  TEST_CASE("--watch, with and without a number") {
    CHECK(look({"tree", "--watch"}).watch == 2s);
    CHECK(look({"tree", "--watch", "0.5"}).watch == 500ms);
    CHECK(look({"--watch", "5", "tree"}).watch == 5s);
    CHECK(look({"tree", "--watch=10", "--json"}).watch == 10s);
    CHECK(look({"--watch", "tree"}).watch == 2s);
  }

  TEST_CASE("a batch size is set, on this machine") {
    CHECK(look({"set", "batch-size=64"}).batch_size == 64u);
    CHECK(look({"set", "batch_size=8", "--file=/a.json"}).settings_file == "/a.json");
    CHECK(no_look({"set"}) == "set what? There is: batch-size=N");
    CHECK(mentions(no_look({"set", "rate=3"}), "and not 'rate=3'"));
    for (const auto* wrong : {"0", "-1", "many", "1048577"})
      CHECK(mentions(no_look({"set", std::string("batch-size=") + wrong}), "1 to 1048576"));
    CHECK(mentions(no_look({"set", "batch-size=8", "--master=h:1"}), "--master is not for set"));
    CHECK(mentions(no_look({"set", "batch-size=8", "--json"}), "--json is for"));
    CHECK(mentions(no_look({"tree", "--master=h:1", "--file=a"}), "--file is for set"));
  }

  TEST_CASE("a job is scaled to so many nodes") {
    const auto scale = look({"scale", "2:6", "--master=h:1"}).scale;
    REQUIRE(scale);
    CHECK(scale->nodes_min == 2);
    CHECK(scale->nodes_max == 6);
    CHECK(look({"--master=h:1", "scale", "4"}).scale->nodes_min == 4);
    CHECK_FALSE(look({"tree"}).scale);
    CHECK(mentions(no_look({"scale"}), "scale to how many nodes?"));
    CHECK(mentions(no_look({"scale", "6:2"}), "scale to how many nodes?"));
    CHECK(mentions(no_look({"scale", "many"}), "scale to how many nodes?"));
    CHECK(mentions(no_look({"scale", "2", "3"}), "'3' is not known"));
    CHECK(mentions(no_look({"scale", "2", "--watch"}), "--watch is for tree"));
    CHECK(mentions(no_look({"scale", "2", "--json"}), "--json is for"));
  }

  TEST_CASE("stacks are of all ranks, once; as lines or as a document") {
    CHECK(look({"stacks"}).stacks);
    CHECK_FALSE(look({"stacks"}).text);
    CHECK(look({"stacks", "--text"}).text);
    CHECK(look({"--json", "stacks", "--master=h:1"}).json);
    CHECK_FALSE(look({"tree"}).stacks);
    CHECK(no_look({"tree", "--text"}) == "--text is for stacks");
    CHECK(mentions(no_look({"stacks", "--text", "--json"}), "--text or --json"));
    for (const char* option : {"--watch", "--depth=1", "--troubled", "--node=n"})
      CHECK(mentions(no_look({"stacks", option}), "is for tree; stacks shows all ranks, once"));
  }

  TEST_CASE("what is wrong is said in one line") {
    CHECK(mentions(no_look({}), "There are: tree, ps, stacks"));
    CHECK(look({"ps"}).lists_jobs);
    CHECK_FALSE(look({"tree"}).lists_jobs);
    CHECK(mentions(no_look({"tree", "ps"}), "'ps' is not known"));
    CHECK(mentions(no_look({"--master", "h:1"}), "There are: tree, ps"));
    CHECK(mentions(no_look({"forest"}), "'forest' is not known"));
    CHECK(mentions(no_look({"tree", "tree"}), "'tree' is not known"));
    CHECK(mentions(no_look({"tree", "5"}), "'5' is not known"));
    CHECK(mentions(no_look({"tree", "--watch", "0"}), "--watch: 0 seconds; 0.1 to 3600"));
    CHECK(mentions(no_look({"tree", "--watch", "nan"}), "--watch: nan seconds"));
    CHECK(mentions(no_look({"tree", "--watch=soon"}), "'soon' is not known"));
    CHECK(mentions(no_look({"tree", "--depth=-1"}), "--depth: -1 levels"));
    CHECK(mentions(no_look({"tree", "--master=a:b:c"}), "--master"));
    CHECK(mentions(no_look({"tree", "--wide"}), "unknown option --wide"));
  }
}
