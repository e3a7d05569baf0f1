#include "actors/master/membership/job_options.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using messages::job_words;

namespace {

const messages::job_word check{"--network-check", "", true, false, {}};

messages::job_word factor(const std::string& x) {
  return {"--straggler-factor", x, false, false, {}};
}

messages::job_word config(const std::string& path, const std::string& content) {
  return {"--elasticity-config", path, false, false, content};
}

std::string text(const job_options::opinion& o) {
  if (const auto* fits = std::get_if<job_options::fits>(&o)) {
    std::string all = "fits";
    for (const auto& each : fits->otherwise)
      all += "; not " + each.node.in_words() + " but " + each.master.in_words();
    for (const auto& word : fits->not_told)
      all += "; not told " + word.in_words();
    return all;
  }
  if (const auto* no = std::get_if<job_options::contradicts>(&o))
    return no->why;
  return "first: " + in_words(std::get<job_options::is_first>(o).words);
}

/// A master that stands alone.
job_options alone(const job_words& own = {}) {
  return job_options({own, std::nullopt, {}, false, [](const job_words& words) -> result<void> {
                        if (find(words, "--wrong"))
                          return failure(errc::invalid, "--wrong: it is");
                        return {};
                      }});
}

} // namespace

TEST_SUITE("job_options") {
  TEST_CASE("the first node's words are taken, once, and all others must say no other ones") {
    auto o = alone();
    CHECK(text(o.judge({check, factor("3")}, false)) ==
          "first: --network-check, --straggler-factor 3");
    o.take("a", {check, factor("3")});
    CHECK(o.is_taking());
    CHECK(text(o.judge({check, factor("3")}, false)) == "fits");
    CHECK(text(o.judge({factor("3.0")}, false)) == "fits");
    CHECK(text(o.judge({}, false)) == "fits");
    CHECK(text(o.judge({factor("4")}, false)) ==
          "it was told --straggler-factor 4, and node a, the job's first, --straggler-factor 3: "
          "give all nodes the same");
    CHECK(text(o.judge({{"--hang-timeout", "9", false, false, {}}}, false)) ==
          "it was told --hang-timeout 9, and node a, the job's first, was not: give all nodes the "
          "same");
  }

  TEST_CASE("a first node that says nothing is the first all the same") {
    auto o = alone();
    CHECK(text(o.judge({}, false)) == "fits");
    o.settle("a");
    CHECK(text(o.judge({check}, false)) ==
          "it was told --network-check, and node a, the job's first, was "
          "not: give all nodes the same");
    CHECK(text(o.judge({}, false)) == "fits");
  }

  TEST_CASE("what the master was told itself counts, and the node is told") {
    auto o = alone({factor("2")});
    const std::string overruled = "; not --straggler-factor 3 but --straggler-factor 2";
    CHECK(text(o.judge({factor("2")}, false)) == "fits");
    CHECK(text(o.judge({factor("3")}, false)) == "fits" + overruled);
    CHECK(text(o.judge({factor("3"), check}, false)) == "first: --network-check");
    o.take("a", {check});
    CHECK(text(o.judge({factor("3"), check}, false)) == "fits" + overruled);
  }

  TEST_CASE("a launcher's master has its node's words, and takes none") {
    const job_options o({{factor("3")}, std::nullopt, {}, false, nullptr});
    CHECK(text(o.judge({factor("3")}, false)) == "fits");
    CHECK(text(o.judge({}, false)) == "fits");
    CHECK(text(o.judge({factor("4")}, false)) ==
          "it was told --straggler-factor 4, and the node that runs the job's master "
          "--straggler-factor 3: give all nodes the same");
    CHECK(text(o.judge({check}, false)) ==
          "it was told --network-check, and the node that runs the job's "
          "master was not: give all nodes the same");
  }

  TEST_CASE("without any node the next one's words are taken instead") {
    auto o = alone({{"--own", "1", false, false, {}}});
    o.take("a", {check, factor("3")});
    CHECK(text(o.judge({factor("4")}, true)) == "first: --straggler-factor 4");
    CHECK(text(o.judge({check, factor("3")}, true)) == "fits");
    // What is left out is corrected, too.
    CHECK(text(o.judge({factor("3")}, true)) == "first: --straggler-factor 3");
    CHECK(text(o.judge({}, true)) == "first: ");
    CHECK(text(o.judge({factor("4"), {"--own", "2", false, false, {}}}, true)) ==
          "first: --straggler-factor 4");
    // A launcher's master has the words of a node that is always there.
    const job_options of_launcher({{factor("3")}, std::nullopt, {}, false, nullptr});
    CHECK(text(of_launcher.judge({factor("4")}, true)) != "first: --straggler-factor 4");
  }

  TEST_CASE("words that no job can have are not taken") {
    const auto o = alone();
    CHECK(text(o.judge({{"--wrong", "", true, false, {}}}, false)) == "--wrong: it is");
  }

  TEST_CASE("files are compared by what is in them, where that is known") {
    auto o = alone();
    o.take("a", {config("/a/e.json", "{}")});
    CHECK(text(o.judge({config("/b/e.json", "{}")}, false)) == "fits");
    CHECK(text(o.judge({config("/a/e.json", "")}, false)) == "fits");
    CHECK(
        text(o.judge({config("/a/e.json", "{ }")}, false)) ==
        "it was told --elasticity-config /a/e.json, and node a, the job's first, a file with other "
        "contents: give all nodes the same");
    CHECK(text(o.judge({config("/b/e.json", "")}, false)) != "fits");
  }

  TEST_CASE("a file of the network may change while the job runs") {
    auto o = alone();
    o.take("a", {{"--topology", "/t", false, false, "a b c"}});
    CHECK(text(o.judge({{"--topology", "/t", false, false, "a b c d"}}, false)) == "fits");
    CHECK(text(o.judge({{"--topology", "/u", false, false, "a b c"}}, false)) != "fits");
  }

  TEST_CASE(
      "a node that is not told what each node acts on hears that; so does one told otherwise") {
    const messages::job_word mode{"--elastic-mode", "ucp", false, true, {}};
    auto o = alone({{"--hang-timeout", "9", false, true, {}}});
    o.take("a", {mode, check});
    CHECK(text(o.judge({mode, {"--hang-timeout", "8", false, true, {}}}, false)) ==
          "fits; not --hang-timeout 8 but --hang-timeout 9");
    CHECK(text(o.judge({check}, false)) ==
          "fits; not told --hang-timeout 9; not told --elastic-mode ucp");
  }

  TEST_CASE("a hello that says too much is refused") {
    const auto o = alone();
    CHECK(text(o.judge({config("/e", std::string(129u << 10, 'x'))}, false))
              .find("says more of the job than 64 options of 131072 bytes") != std::string::npos);
    CHECK(text(o.judge(job_words(65, check), false)).find("64 options") != std::string::npos);
  }
}
