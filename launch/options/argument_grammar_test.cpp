#include "launch/options/argument_grammar.hpp"

#include <doctest/doctest.h>

#include <cstdio>

using namespace troupe::launch;

namespace {

/// A few options of torchrun's, and one of ours.
struct few {
  std::string nodes = "1", redirects = "0", how = "spawn", ours;
  std::int64_t restarts = 0;
  bool module = false, no_python = false;
  std::vector<std::string> rest;

  std::string parse(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment = {}) {
    argument_grammar d("program", "[options]", "About.");
    option help{scope::process, {"-h", "--help"}, "", "Help"};
    help.answer = [](const std::string&) { return "help"; };
    d.add({"One",
           {{scope::process, {"--nnodes"}, "N", "Nodes", into(nodes)},
            {scope::process, {"-r", "--redirects"}, "N", "Redirects", into(redirects)},
            {scope::process, {"--max-restarts"}, "N", "Restarts", into(restarts)},
            {scope::process, {"-m", "--module"}, "", "Module", into(module)},
            {scope::process, {"--no-python"}, "", "No Python", into(no_python)},
            among({"spawn", "fork"}, {scope::process, {"--start-method"}, "HOW", "How", into(how)}),
            help}});
    d.add(in_full(option_group{
        "Two",
        {{scope::process, {"--node-name"}, "NAME", "Name", into(ours)},
         without("not there", {scope::process, {"--node_unit"}, "N", "Unit", into(ours)})}}));
    const auto said = d.parse(arguments, environment);
    if (const auto* text = std::get_if<just_print>(&said))
      return text->text;
    if (const auto* wrong = std::get_if<refusal>(&said))
      return wrong->what;
    rest = std::get<argument_grammar::positional>(said).rest;
    return "";
  }
};

} // namespace

TEST_CASE("values stand behind their option, or in the same word") {
  few f;
  CHECK(f.parse({"--nnodes", "2", "-r3", "--max_restarts=5", "-m", "t.py", "-x", "--", "y"}) == "");
  CHECK(f.nodes == "2");
  CHECK(f.redirects == "3");
  CHECK(f.restarts == 5);
  CHECK(f.module);
  CHECK(f.rest == std::vector<std::string>{"t.py", "-x", "--", "y"});
  CHECK(few{}.parse({"--max-restarts", "-1", "t"}) == "");
  CHECK(few{}.parse({"--nnodes", "", "t"}) == "");
  CHECK(few{}.parse({"--nnodes", "--max-restarts", "1"}) == "--nnodes needs a value");
  CHECK(few{}.parse({"--nnodes", "--", "t"}) == "--nnodes needs a value");
  CHECK(few{}.parse({"--nnodes"}) == "--nnodes needs a value");
  CHECK(few{}.parse({"--module=1"}) == "--module takes no value");
}

TEST_CASE("short flags may stand together, the last with its value") {
  few f;
  CHECK(f.parse({"-mr3", "t"}) == "");
  CHECK(f.module);
  CHECK(f.redirects == "3");
  few apart;
  CHECK(apart.parse({"-mr", "1", "t"}) == "");
  CHECK(apart.redirects == "1");
  CHECK(few{}.parse({"-mx", "t"}) == "-m takes no value");
  CHECK(few{}.parse({"-x"}) == "unknown option -x (see --help)");
}

TEST_CASE("a unique beginning of torchrun's own names is enough") {
  few f;
  CHECK(f.parse({"--nn=2", "--max", "3", "--redirect=1", "--no", "t"}) == "");
  CHECK(f.nodes == "2");
  CHECK(f.restarts == 3);
  CHECK(f.no_python);
  CHECK(few{}.parse({"--n=2"}) == "'--n=2' may be any of --nnodes, --no-python");
  CHECK(few{}.parse({"--node-n=2"}) == "unknown option --node-n=2 (see --help)");
  CHECK(few{}.parse({"--max-restarts_=2"}) ==
        "unknown option --max-restarts_; did you mean --max-restarts? (see --help)");
}

TEST_CASE("the first word that is no option ends them; what looks like a number is a word") {
  few f;
  CHECK(f.parse({"-5", "--nnodes", "2"}) == "");
  CHECK(f.rest == std::vector<std::string>{"-5", "--nnodes", "2"});
  CHECK(f.parse({"-", "-m"}) == "");
  CHECK(f.parse({"-a b"}) == "");
  CHECK(f.rest == std::vector<std::string>{"-a b"});
}

TEST_CASE("the first double dash among the launcher's own words is swallowed") {
  few f;
  CHECK(f.parse({"-m", "--", "--nnodes", "a"}) == "");
  CHECK(f.rest == std::vector<std::string>{"--nnodes", "a"});
  CHECK(f.parse({"t.py", "--", "a", "--"}) == "");
  CHECK(f.rest == std::vector<std::string>{"t.py", "a", "--"});
  CHECK(f.parse({"--", "t.py", "--", "a"}) == "");
  CHECK(f.rest == std::vector<std::string>{"t.py", "--", "a"});
}

TEST_CASE("variables are defaults; flags are numbers there, and wrong ones come before anything") {
  few f;
  CHECK(f.parse({"--nnodes=3", "t"}, {{"PET_NNODES", "7"},
                                      {"PET_REDIRECTS", "2"},
                                      {"PET_MODULE", "2"},
                                      {"PET_NO_PYTHON", "0"}}) == "");
  CHECK(f.nodes == "3");
  CHECK(f.redirects == "2");
  CHECK(f.module);
  CHECK_FALSE(f.no_python);
  CHECK(few{}.parse({"-h"}, {{"PET_MODULE", "yes"}}) ==
        "PET_MODULE: 'yes' is not a whole number (0 no, 1 yes)");
  CHECK(few{}.parse({"t"}, {{"PET_MAX_RESTARTS", "x"}}) ==
        "PET_MAX_RESTARTS: 'x' is not a whole number");
  CHECK(few{}.parse({"--max-restarts=1", "t"}, {{"PET_MAX_RESTARTS", "x"}}) == "");
}

TEST_CASE("words are taken in their order, so that help may come before what is wrong") {
  CHECK(few{}.parse({"-h", "--max-restarts", "x"}) == "help");
  CHECK(few{}.parse({"--max-restarts", "x", "-h"}) == "--max-restarts: 'x' is not a whole number");
  CHECK(few{}.parse({"--start-method", "x"}) == "--start-method: 'x' is none of spawn, fork");
  CHECK(few{}.parse({"--frob", "-h"}) == "help");
}

TEST_CASE("what is known and missing is refused by name, in both spellings") {
  CHECK(few{}.parse({"--node_unit=2", "t"}) == "--node_unit: not there");
  CHECK(few{}.parse({"--node-unit", "2", "t"}) == "--node-unit: not there");
  CHECK(few{}.parse({"t"}, {{"PET_NODE_UNIT", "2"}}) == "PET_NODE_UNIT: not there");
}
