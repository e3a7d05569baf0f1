#include "launch/wiring/elasticity_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe::launch;
using variant = troupe::actors::elasticity_config::variant;

namespace {

std::string said(const std::string& json) {
  const auto e = read_elasticity(json, variant::capped);
  return e ? "" : e.error().what;
}

std::string section(const std::string& rest) {
  return R"({"train_micro_batch_size_per_gpu": 1, "elasticity": {"enabled": true, )" + rest + "}}";
}

} // namespace

TEST_CASE("a DeepSpeed config's elasticity section") {
  const auto e = read_elasticity(
      section(R"("max_train_batch_size": 8, "micro_batch_sizes": [4, 2], "min_gpus": 1,
                 "max_gpus": 4, "min_time": 20, "prefer_larger_batch": true, "version": 0.1,
                 "ignore_non_elastic_batch_info": true)"),
      variant::capped);
  REQUIRE(e);
  CHECK(e->allows(4));
  CHECK_FALSE(e->allows(3));
  CHECK(said(section(R"("max_train_batch_size": 8, "micro_batch_sizes": [2], "version": "0.2",
                        "num_gpus_per_node": 2, "model_parallel_size": 2)")) == "");
}

TEST_CASE("what is wrong with it, in one line") {
  CHECK(said("{").find("it is not JSON: ") == 0);
  CHECK(said("[1]") == "it has no \"elasticity\" section");
  CHECK(said("{}") == "it has no \"elasticity\" section");
  CHECK(said(R"({"elasticity": 7})") == "it has no \"elasticity\" section");
  CHECK(said(R"({"elasticity": {"max_train_batch_size": 8, "micro_batch_sizes": [2]}})") ==
        "elasticity is not enabled");
  CHECK(said(section(R"("micro_batch_sizes": [2])")) ==
        "elasticity: max_train_batch_size is missing");
  CHECK(said(section(R"("max_train_batch_size": 8)")) ==
        "elasticity: micro_batch_sizes is missing");
  CHECK(said(section(R"("max_train_batch_size": "8", "micro_batch_sizes": [2])")) ==
        "elasticity: max_train_batch_size is no whole number");
  CHECK(said(section(R"("max_train_batch_size": 8, "micro_batch_sizes": 2)")) ==
        "elasticity: micro_batch_sizes is no list");
  CHECK(said(section(R"("max_train_batch_size": 8, "micro_batch_sizes": [2.5])")) ==
        "elasticity: micro_batch_sizes holds something that is no whole number");
  CHECK(said(section(R"("max_train_batch_size": 8, "micro_batch_sizes": [2], "version": 0.3)")) ==
        "elasticity: version is neither 0.1 nor 0.2");
  CHECK(said(section(R"("max_train_batch_size": 8, "micro_batch_sizes": [16], "version": 0.1)")) ==
        "elasticity: 16 among micro_batch_sizes is more than max_train_batch_size, 8");
  CHECK(said(section(R"("enabled": 1, "max_train_batch_size": 8, "micro_batch_sizes": [2])")) !=
        "");
}

TEST_CASE("a file that cannot be read") {
  const auto e = load_elasticity("/nonexistent/ds.json", variant::capped);
  REQUIRE_FALSE(e);
  CHECK(e.error().what == "--elasticity-config /nonexistent/ds.json: No such file or directory");
}

TEST_CASE("a pipe that has no writer holds nothing up") {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("troupe_pipe_{}", ::getpid())).string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto e = load_elasticity(path, variant::capped);
  ::unlink(path.c_str());
  REQUIRE_FALSE(e);
  CHECK(e.error().what.find("--elasticity-config " + path + ": ") == 0);
}
