#include "launch/wiring/topology_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <future>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

struct one_file {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("troupe_topology_file_{}", ::getpid());
  ~one_file() { std::filesystem::remove(path); }

  void has(const std::string& text) const {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  topology_settings settings(duration wait = 60s) const {
    topology_settings s;
    s.file = path;
    s.wait = wait;
    return s;
  }
};

/// What it answers, and what it says meanwhile.
struct reading {
  std::promise<actors::topology_answer> answered;
  std::promise<std::string> said;
  std::unique_ptr<topology_file> source;

  explicit reading(const topology_settings& from) {
    source = std::make_unique<topology_file>(
        from, [this](const std::string&, const log::event& e) { said.set_value(e.text); });
    source->read([this](const actors::topology_answer& a) { answered.set_value(a); });
  }
  actors::topology_answer answer() { return answered.get_future().get(); }
};

} // namespace

TEST_CASE("a file of --topology is read, with what it was taken for") {
  const one_file file;
  file.has("asw psw n0\nasw psw n1\n");
  const auto answer = reading(file.settings()).answer();
  REQUIRE(answer.tree.has_value());
  CHECK((*answer.tree)->size() == 2);
  CHECK(answer.from == file.path);
  CHECK(answer.taken_for == "lines 'asw psw ip'");
}

TEST_CASE("a file that is not there, and then not complete, is waited for") {
  const one_file file;
  reading r(file.settings());
  CHECK(r.said.get_future().get() ==
        fmt::format("--topology {}: there is no such file; the first start waits for it, up to "
                    "60.0 s",
                    file.path));
  file.has(R"({"status": "initializing"})");
  file.has("a b n0\n");
  CHECK(r.answer().tree.has_value());
}

TEST_CASE("the wait has an end") {
  const one_file file;
  file.has(R"({"status": "initializing"})");
  const auto answer = reading(file.settings(0s)).answer();
  REQUIRE_FALSE(answer.tree.has_value());
  CHECK(answer.tree.error().what.find("taken for a rank table: the rank table is not completed "
                                      "(after ") == 0);
}

TEST_CASE("a file that is wrong twice is wrong; half of one is read again") {
  const one_file file;
  file.has("a b\n");
  const auto answer = reading(file.settings()).answer();
  REQUIRE_FALSE(answer.tree.has_value());
  CHECK(answer.tree.error().what.find("line 1: expected three words") != std::string::npos);
  const auto none = reading({"/proc", {}, 1, 60s}).answer();
  REQUIRE_FALSE(none.tree.has_value());
}

TEST_CASE("a source that is gone says nothing") {
  const one_file file;
  auto r = std::make_unique<reading>(file.settings());
  r->said.get_future().wait();
  auto answer = r->answered.get_future();
  r->source.reset();
  file.has("a b n0\n");
  r.reset();
  CHECK_THROWS_AS(answer.get(), std::future_error);
}
