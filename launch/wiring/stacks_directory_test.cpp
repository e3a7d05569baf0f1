#include "launch/wiring/stacks_directory.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

using namespace troupe;
namespace fs = std::filesystem;

namespace {

struct place {
  place() {
    char name[] = "/tmp/stacks-directory-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~place() { fs::remove_all(path); }

  fs::path path;
};

diag::stacks_written written(diag::stacks_archive& archive, diag::stacks_to_write what) {
  std::promise<diag::stacks_written> done;
  archive.write(std::move(what), [&done](diag::stacks_written w) { done.set_value(std::move(w)); });
  return done.get_future().get();
}

messages::msg<messages::MergedStacks> of_rank_0() {
  return messages::local<messages::MergedStacks>("a/hang_watchdog", [](auto b) {
    b.setNode("a");
    b.setWorldSize(2);
    auto ranks = b.initRanks(2);
    ranks.set(0, 0);
    ranks.set(1, 0);
  });
}

} // namespace

TEST_CASE("stacks: numbers go on behind what an earlier life has written, and what this one has") {
  const place p;
  for (const char* name : {"2", "11", "12x", "x13", "99999999999999999999"})
    fs::create_directory(p.path / name);
  const auto archive = launch::stacks_directory(p.path);
  CHECK(archive->free_number() == 12);
  written(*archive, {12, {of_rank_0()}, {}});
  CHECK(archive->free_number() == 13);
  // Of one that could not be written the number is used all the same.
  CHECK(written(*archive, {20, {}, {}}).why == "no node has answered");
  CHECK(archive->free_number() == 21);
  CHECK(launch::stacks_directory(p.path / "none")->free_number() == 1);
}

TEST_CASE("stacks: what did not come stands beside what did, and in the answer") {
  const place p;
  const auto archive = launch::stacks_directory(p.path);
  const auto w = written(*archive, {1, {of_rank_0()}, {{"node b did not answer", 1, 3}}});
  CHECK(w.directory == p.path / "1");
  CHECK(w.ranks == 1);
  CHECK(w.world_size == 4);
  CHECK(w.shown->absent().text() == "1-3");
  CHECK(w.shown->missing.at("node b did not answer").text() == "1-3");
  std::ifstream file(p.path / "1" / "stacks.json");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  CHECK(json.find(R"({"what":"node b did not answer","ranks":"1-3"})") != std::string::npos);
}
