#include "launch/options/interpreter.hpp"

#include "launch/options/options.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

namespace {

const pythons_found all{"/job/bin/python3", "/active/bin/python3", "/usr/bin/python3"};
using variables = std::map<std::string, std::string>;

} // namespace

TEST_CASE("the interpreter is the nearest one that there is") {
  struct row {
    std::string given;
    variables environment;
    pythons_found found;
    std::string program, from;
  };
  const row rows[] = {
      {"/opt/python", {{"PYTHON_EXEC", "/exec/python"}}, all, "/opt/python", "--python"},
      {"", {{"PYTHON_EXEC", "/exec/python"}}, all, "/exec/python", "PYTHON_EXEC"},
      {"", {{"PYTHON_EXEC", ""}}, all, "/job/bin/python3", "the environment of actor-launcher"},
      {"", {}, {"", all.active, all.on_path}, "/active/bin/python3", "the active environment"},
      {"", {}, {"", "", all.on_path}, "/usr/bin/python3", "PATH"},
      {"", {}, {}, "python3", "PATH"},
  };
  for (const auto& r : rows) {
    const auto chosen = choose_interpreter(r.given, r.environment, r.found);
    CHECK(chosen.program == r.program);
    CHECK(chosen.from == r.from);
  }
}

TEST_CASE("--python reaches the options, and only its own full name does") {
  machine_facts machine;
  machine.pythons = all;
  const auto chosen = [&machine](const std::vector<std::string>& arguments) {
    const auto p = parse_launcher(arguments, machine);
    const auto* o = std::get_if<launcher_options>(&p);
    return o ? o->python.program : std::get<refusal>(p).what;
  };
  CHECK(chosen({"t.py"}) == "/job/bin/python3");
  CHECK(chosen({"--python", "/opt/python", "t.py"}) == "/opt/python");
  CHECK(chosen({"--python", "", "t.py"}) == "--python: which one? It is empty");
  machine.environment["PET_PYTHON"] = "/pet/python";
  CHECK(chosen({"t.py"}) == "/pet/python");
}
