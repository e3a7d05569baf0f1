#include "launch/wiring/open_files.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

namespace {

launcher_options job(std::uint32_t nodes, std::uint32_t processes) {
  launcher_options o;
  o.nodes_min = o.nodes_max = nodes;
  o.processes_per_node = processes;
  return o;
}

} // namespace

TEST_SUITE("open_files") {
  TEST_CASE("the default limit of 1,024 is enough for 40 workers of one node") {
    CHECK_FALSE(open_files_validation_error(job(1, 40), 1024));
    CHECK_FALSE(open_files_validation_error(job(2, 8), 392));
  }

  TEST_CASE("with several nodes each worker's memory is there twice") {
    CHECK(open_files_needed(job(2, 57)) == 56 + 57 * 5 + 57 * (36 + 1));
    CHECK(open_files_needed(job(1, 57)) == 56 + 57 * 5 + 57 * (18 + 1));
  }

  TEST_CASE(
      "workers beyond those that have memory need files for their logs and their connections") {
    CHECK(open_files_needed(job(2, 200)) - open_files_needed(job(2, 100)) == 500);
  }

  TEST_CASE("too few: what is needed, what is there and what to do") {
    CHECK(open_files_validation_error(job(2, 57), 1024) ==
          "57 workers on this node need 2450 open files (memory for checkpoints takes 36 for "
          "each), and the hard limit allows 1024: raise it (ulimit -Hn 2450; --ulimit nofile=2450 "
          "for docker; LimitNOFILE=2450 for systemd), or lower --nproc-per-node");
    CHECK(open_files_validation_error(job(1, 1), 20)->rfind("1 worker on this node needs 80", 0) ==
          0);
  }
}
