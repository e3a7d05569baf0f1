#include "launch/options/journal_place.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

TEST_CASE("a file, or a ConfigMap") {
  CHECK_FALSE(config_map_of(""));
  CHECK_FALSE(config_map_of("/journal/words.sqlite"));
  CHECK_FALSE(config_map_of("./configmap:words"));
  CHECK(config_map_of("configmap:words") == "words");
}

TEST_CASE("names that objects of Kubernetes may have") {
  for (const char* good : {"words", "w", "0", "words-1.journal", "a.b-c.d"})
    CHECK_FALSE(wrong_journal("configmap:" + std::string(good)));
  for (const char* bad :
       {"", "Words", "-w", "w-", ".w", "w.", "a..b", "a.-b", "a-.b", "a/b", "a b"})
    CHECK(wrong_journal("configmap:" + std::string(bad)));
  CHECK_FALSE(wrong_journal("configmap:" + std::string(253, 'a')));
  CHECK(wrong_journal("configmap:" + std::string(254, 'a')));
  CHECK_FALSE(wrong_journal("Words"));
  CHECK(wrong_journal("configmap:Words")->what ==
        "--journal=configmap:Words: 'Words' is no name of a ConfigMap (small letters, digits, '-' "
        "and '.', such as configmap:words); a file of that name is ./configmap:Words");
}
