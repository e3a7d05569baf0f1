#include "launch/wiring/interpreters.hpp"

#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace troupe::launch;
namespace fs = std::filesystem;

namespace {

/// Directories with empty programs in them.
class machine {
 public:
  std::string at(const std::string& path) const { return root_.path / path; }
  void file(const std::string& path) const {
    fs::create_directories((root_.path / path).parent_path());
    std::ofstream(root_.path / path).flush();
  }
  void program(const std::string& path) const {
    file(path);
    fs::permissions(root_.path / path, fs::perms::owner_all);
  }

 private:
  troupe::testing::temporary_directory root_;
};

} // namespace

TEST_CASE("a program in a virtual environment finds the interpreter beside it") {
  const machine m;
  m.program("venv/bin/python3");
  m.program("venv/bin/actor-launcher");
  // /usr/bin has both as well, and is no environment.
  CHECK(find_pythons({}, m.at("venv/bin/actor-launcher")).beside.empty());
  m.file("venv/pyvenv.cfg");
  CHECK(find_pythons({}, m.at("venv/bin/actor-launcher")).beside == m.at("venv/bin/python3"));
  // Called by its name alone, and from elsewhere.
  CHECK(find_pythons({{"PATH", m.at("other") + ":" + m.at("venv/bin")}}, "actor-launcher").beside ==
        m.at("venv/bin/python3"));
  CHECK(find_pythons({{"PATH", m.at("other")}}, "actor-launcher").beside.empty());
}

TEST_CASE("an environment may have linked its interpreter and the program") {
  const machine m;
  m.program("usr/bin/python3.11");
  m.program("usr/bin/actor-launcher");
  m.file("conda/conda-meta/history");
  fs::create_directories(m.at("conda/bin"));
  fs::create_symlink(m.at("usr/bin/python3.11"), m.at("conda/bin/python"));
  fs::create_symlink(m.at("usr/bin/actor-launcher"), m.at("conda/bin/actor-launcher"));
  CHECK(find_pythons({}, m.at("conda/bin/actor-launcher")).beside == m.at("conda/bin/python"));
}

TEST_CASE("the active environment is the one that its variable names, if it is still there") {
  const machine m;
  m.program("venv/bin/python3");
  m.program("conda/bin/python3");
  const auto active = [](std::map<std::string, std::string> environment) {
    return find_pythons(environment, "actor-launcher").active;
  };
  CHECK(active({{"VIRTUAL_ENV", m.at("venv")}, {"CONDA_PREFIX", m.at("conda")}}) ==
        m.at("venv/bin/python3"));
  CHECK(active({{"VIRTUAL_ENV", m.at("gone")}, {"CONDA_PREFIX", m.at("conda")}}) ==
        m.at("conda/bin/python3"));
  CHECK(active({{"VIRTUAL_ENV", m.at("gone")}}).empty());
}

TEST_CASE("on PATH the first that can be run counts") {
  const machine m;
  m.file("a/python3");
  m.program("b/python3");
  m.program("c/python3");
  CHECK(find_pythons({{"PATH", m.at("a") + ":" + m.at("b") + ":" + m.at("c")}}, "x").on_path ==
        m.at("b/python3"));
  CHECK(find_pythons({{"PATH", m.at("a")}}, "x").on_path.empty());
  CHECK(find_pythons({}, "x").on_path.empty());
}
