#include "launch/options/options.hpp"
#include "runtime/os/watch/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

TEST_SUITE("troupe-dump's options") {
  dump_program_options dump(const std::vector<std::string>& arguments) {
    const auto p = parse_dump(arguments, {});
    if (const auto* e = std::get_if<refusal>(&p))
      FAIL(e->what);
    return std::get<dump_program_options>(p);
  }
  std::string no_dump(const std::vector<std::string>& arguments) {
    const auto p = parse_dump(arguments, {});
    REQUIRE(std::holds_alternative<refusal>(p));
    return std::get<refusal>(p).what;
  }

  TEST_CASE("options stand before, between and behind processes") {
    const auto o = dump({"--samples", "3", "7", "--apart=50", "8:2", "9", "--world", "4"});
    REQUIRE(o.processes.size() == 3);
    CHECK(o.processes[0].pid == 7);
    CHECK(o.processes[1].pid == 8);
    CHECK(o.processes[1].rank == 2);
    CHECK(o.processes[2].rank == 0);
    CHECK(o.samples == 3);
    CHECK(o.apart == 50ms);
    CHECK(o.world_size == 4);
    CHECK((o.python && o.native && !o.with_children && !o.as_messages));
  }

  TEST_CASE("what a node supervisor types") {
    const auto o = dump({"--messages", "--children", "--within", "1500", "7:0"});
    CHECK((o.as_messages && o.with_children));
    CHECK(o.within == 1500ms);
    CHECK((o.samples == 0 && o.apart == 200ms));
  }

  TEST_CASE("one of both kinds of stacks") {
    CHECK(!dump({"--python-only", "7"}).native);
    CHECK(!dump({"--native-only", "7"}).python);
    CHECK(no_dump({"--python-only", "--native-only", "7"}) ==
          "--python-only and --native-only leave nothing");
  }

  TEST_CASE("nothing comes from the environment: a launcher's may have options of its workers") {
    machine_facts machine;
    machine.environment = {{"PET_SAMPLES", "5"}, {"PET_CHILDREN", "1"}};
    const auto p = parse_dump({"7"}, machine);
    const auto* o = std::get_if<dump_program_options>(&p);
    REQUIRE(o);
    CHECK((o->samples == 0 && !o->with_children));
  }

  TEST_CASE("what is wrong is told in one line") {
    CHECK(no_dump({}) == "1 to 1024 processes must be named");
    CHECK(no_dump(std::vector<std::string>(limits::dumped_processes_max + 1, "7")) ==
          "1 to 1024 processes must be named");
    CHECK(no_dump({"7", "x"}) ==
          "'x' is neither an option nor the number of a process (see --help)");
    for (const auto* word : {"0", "7:", "7:x", "7:-1", "7:99999999", ":1", "", "99999999999"})
      CHECK(no_dump({word}).find("neither an option nor the number") != std::string::npos);
    CHECK(no_dump({"-7"}) == "'-7' is not the number of a process (see --help)");
    CHECK(no_dump({"--samples", "1", "7"}).find("one sample tells no motion") == 0);
    CHECK(no_dump({"--samples", "101", "7"}) == "--samples: 101; 0, or 2 to 100 are possible");
    CHECK(no_dump({"--samples", "-1", "7"}) == "--samples: -1; 0, or 2 to 100 are possible");
    CHECK(no_dump({"--apart", "0", "7"}) == "--apart: 0; 1 to 600000 are possible");
    CHECK(no_dump({"--within", "600001", "7"}) == "--within: 600001; 1 to 600000 are possible");
    CHECK(no_dump({"--world", "0", "7"}).find("--world: 0; 1 to ") == 0);
    CHECK(no_dump({"--world", "2", "7:2"}) == "rank 2 is not one of 2");
    CHECK(no_dump({"--sampels", "3", "7"}).find("did you mean --samples?") != std::string::npos);
  }
}
