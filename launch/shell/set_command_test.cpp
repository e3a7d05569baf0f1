#include "launch/shell/set_command.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

using namespace troupe::launch;
using namespace std::string_view_literals;

namespace fs = std::filesystem;

TEST_CASE("files of settings are those in the environment of this user's workers") {
  auto proc = (fs::temp_directory_path() / "troupe_proc_XXXXXX").string();
  REQUIRE(::mkdtemp(proc.data()));
  const auto add = [&proc](const std::string& pid, std::string_view environment) {
    fs::create_directories(fs::path(proc) / pid);
    std::ofstream(fs::path(proc) / pid / "environ", std::ios::binary) << environment;
  };
  add("10",
      "DLROVER_PARAL_CONFIG_PATH=/run/a.json\0TROUPE_GENERATION=1\0TORCHELASTIC_RUN_ID=mine\0"sv);
  add("11",
      "TROUPE_GENERATION=1\0DLROVER_PARAL_CONFIG_PATH=/run/a.json\0TORCHELASTIC_RUN_ID=mine"sv);
  add("12", "DLROVER_PARAL_CONFIG_PATH=/run/of_another_program.json\0"sv);
  add("13", "TROUPE_GENERATION=4\0"sv);
  add("14", "TROUPE_GENERATION=4\0DLROVER_PARAL_CONFIG_PATH=\0"sv);
  const auto found = tuning_files(proc);
  REQUIRE(found.size() == 1);
  CHECK(found.begin()->first == "/run/a.json");
  CHECK(found.begin()->second == "mine");
  fs::remove_all(proc);
}
