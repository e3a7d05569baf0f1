#include "launch/wiring/tuning_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

using namespace troupe;
using namespace troupe::launch;

namespace fs = std::filesystem;
namespace json = boost::json;

TEST_CASE("the file has the members of DLRover's ParallelConfig") {
  const auto all = json::parse(tuning_defaults()).as_object();
  CHECK(all.size() == 3);
  const auto& loader = all.at("dataloader").as_object();
  CHECK(loader.size() == 6);
  for (const auto* number :
       {"version", "last_batch_size", "batch_size", "num_workers", "pin_memory"})
    CHECK(loader.at(number).as_int64() == 0);
  CHECK(loader.at("dataloader_name").as_string().empty());
  const auto& optimizer = all.at("optimizer").as_object();
  CHECK(optimizer.size() == 4);
  CHECK(optimizer.at("learning_rate").as_double() == 0);
  CHECK_FALSE(all.at("restart").as_bool());
}

TEST_CASE("each size has a larger version, and all else in the file stays") {
  auto change = with_batch_size(tuning_defaults(), 32);
  REQUIRE(change);
  CHECK(change->before == 0);
  CHECK(change->version == 1);
  auto text = change->text;
  text.replace(text.find("\"pin_memory\":0"), 14, "\"pin_memory\":1");
  change = with_batch_size(text, 64);
  REQUIRE(change);
  CHECK(change->before == 32);
  CHECK(change->version == 2);
  const auto all = json::parse(change->text).as_object();
  const auto& loader = all.at("dataloader").as_object();
  CHECK(loader.at("batch_size").as_int64() == 64);
  CHECK(loader.at("last_batch_size").as_int64() == 32);
  CHECK(loader.at("pin_memory").as_int64() == 1);
  CHECK(all.at("batch_size").as_int64() == 64);
}

TEST_CASE("another file is not taken for one") {
  for (const auto* text : {"", "[]", "{\"dataloader\": 3}", "{\"dataloader\": {\"version\": -1}}"})
    CHECK_MESSAGE(!with_batch_size(text, 8), text);
  CHECK(with_batch_size("{}", 8)->version == 1);
}

TEST_CASE("a file that is there keeps its settings; a new one is its user's") {
  auto pattern = (fs::temp_directory_path() / "troupe_tuning_XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()));
  const auto path = pattern + "/settings.json";
  REQUIRE(make_tuning_file(path));
  struct stat is {};
  REQUIRE(::stat(path.c_str(), &is) == 0);
  CHECK((is.st_mode & 0777) == 0600);
  std::ofstream(path) << "mine";
  REQUIRE(make_tuning_file(path));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() == "mine");
  const auto refused = make_tuning_file(pattern + "/missing/settings.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("--auto_tunning: ") == 0);
  fs::remove_all(pattern);
}
