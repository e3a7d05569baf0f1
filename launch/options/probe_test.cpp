#include "launch/options/options.hpp"
#include "probe/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

TEST_SUITE("troupe-probe's options") {
  probe_program_options probe(const std::vector<std::string>& arguments) {
    const auto p = parse_probe(arguments, {});
    if (const auto* e = std::get_if<refusal>(&p))
      FAIL(e->what);
    return std::get<probe_program_options>(p);
  }
  std::string no_probe(const std::vector<std::string>& arguments) {
    const auto p = parse_probe(arguments, {});
    REQUIRE(std::holds_alternative<refusal>(p));
    return std::get<refusal>(p).what;
  }

  TEST_CASE("without a word") {
    const auto o = probe({});
    CHECK((!o.json && !o.as_messages && !o.box));
    CHECK(o.within == 60s);
  }

  TEST_CASE("what a node supervisor types") {
    CHECK(probe({"--messages"}).as_messages);
  }

  TEST_CASE("the check of switches, and what it takes for granted") {
    const auto o = probe({"--switchbox-check", "--json"});
    REQUIRE(o.box);
    CHECK(o.json);
    CHECK(o.box->pairs == std::vector<box_pair>{{0, 1}, {2, 4}, {3, 5}, {6, 7}});
    CHECK(o.box->min_bandwidth == 10'000);
    CHECK(o.box->min_channels == 2);
    CHECK(probe({"--min-channels", "0"}).box->min_channels == 0);
    CHECK(probe({"--min_bandwidth=5"}).box->min_bandwidth == 5);
    CHECK(probe({"--box-pairs", "0:1,3:2  5:6"}).box->pairs ==
          std::vector<box_pair>{{0, 1}, {3, 2}, {5, 6}});
  }

  TEST_CASE("fractions of a second") {
    CHECK(probe({"--within", "0.25"}).within == 250ms);
    CHECK(probe({"--within", "0.00001"}).within == 1ms);
    CHECK(probe({"--within", "3600"}).within == 1h);
  }

  TEST_CASE("nothing comes from the environment") {
    machine_facts machine;
    machine.environment = {{"PET_JSON", "1"}, {"PET_BOX_PAIRS", "0:1"}};
    const auto p = parse_probe({}, machine);
    const auto* o = std::get_if<probe_program_options>(&p);
    REQUIRE(o);
    CHECK((!o->json && !o->box));
  }

  TEST_CASE("what is wrong is told in one line") {
    CHECK(no_probe({"x"}) == "'x' is no option of troupe-probe (see --help)");
    for (const auto* word : {"0-1", "0:", ":1", "0:1:2", "a:b", "0:-1", "0:10000", "1"})
      CHECK(no_probe({"--box-pairs", word}) ==
            "--box-pairs: '" + std::string(word) + "' is no pair of devices; one is written 0:1");
    CHECK(no_probe({"--box-pairs", "3:3"}) == "--box-pairs: '3:3' is one device; a pair is of two");
    CHECK(no_probe({"--box-pairs", " , "}) == "--box-pairs: 0 pairs; 1 to 256 are possible");
    std::string many;
    for (std::size_t n = 0; n <= limits::box_pairs_max; ++n)
      many += "0:1 ";
    CHECK(no_probe({"--box-pairs", many}) == "--box-pairs: 257 pairs; 1 to 256 are possible");
    CHECK(no_probe({"--min-bandwidth", "-1"}) ==
          "--min-bandwidth: -1; 0 to 1000000000 are possible");
    CHECK(no_probe({"--min-channels", "1025"}) == "--min-channels: 1025; 0 to 1024 are possible");
    for (const auto* seconds : {"0", "-1", "nan", "3601", "inf"})
      CHECK(no_probe({"--within", seconds}).find("--within: ") == 0);
  }
}
