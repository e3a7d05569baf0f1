#include "launch/options/nearest.hpp"

#include "launch/options/options.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

TEST_CASE("the nearest word is the one with the fewest slips") {
  const std::vector<std::string> options{"--nnodes", "--node-rank", "--nproc-per-node", "--tee"};
  CHECK(nearest("--nodes", options) == "--nnodes");
  CHECK(nearest("--nndoes", options) == "--nnodes");
  CHECK(nearest("--node-rnak", options) == "--node-rank");
  CHECK(nearest("--nproc-pernode", options) == "--nproc-per-node");
  CHECK(nearest("--batch-size", options).empty());
  CHECK(nearest("", options).empty());
  CHECK(nearest("--nnodes", {}).empty());
  CHECK(nearest(std::string(1'000'000, 'x'), options).empty());
}

TEST_CASE("an unknown option is told with the one that was probably meant") {
  const auto refused = [](const std::vector<std::string>& arguments) {
    const auto p = parse_launcher(arguments, {});
    return std::get<refusal>(p).what;
  };
  CHECK(refused({"--max-restrats=3", "t.py"}) ==
        "unknown option --max-restrats; did you mean --max-restarts? (see --help)");
  CHECK(refused({"--nproc_per_nod3", "2", "t.py"}) ==
        "unknown option --nproc_per_nod3; did you mean --nproc-per-node? (see --help)");
  CHECK(refused({"-=x", "t.py"}) == "unknown option -=x (see --help)");
  CHECK(refused({"--batch-size=3", "t.py"}) == "unknown option --batch-size=3 (see --help)");
}
