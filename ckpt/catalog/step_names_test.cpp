#include "ckpt/catalog/step_names.hpp"

#include "ckpt/catalog/save_id.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace troupe;
using namespace troupe::ckpt;

TEST_CASE("saves have one order: by generation, then by their number in it") {
  const save_id in_order[] = {
      {}, {generation{}, 9}, {generation{1}, 0}, {generation{1}, 7}, {generation{2}, 1}};
  for (const auto& a : in_order)
    for (const auto& b : in_order) {
      CHECK((a < b) == (&a < &b));
      CHECK((a == b) == (&a == &b));
      CHECK((a != b) == (&a != &b));
    }
}

TEST_CASE("a marker comes back as it was written") {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const char* directory : {"100", ".", "a/b c", "line\nline"})
    for (const save_id id : {save_id{}, {generation{3}, 7}, {generation{most}, most}}) {
      const auto back = marker_in(to_text({directory, id}));
      CHECK(back.directory == directory);
      CHECK(back.begun_by == id);
    }
}

TEST_CASE("a marker of a version that did not number saves, or a damaged one, is of no save") {
  struct row {
    const char* text;
    const char* directory;
  };
  for (const row& r : {row{"100", "100"}, row{".", "."}, row{"", ""}, row{"\n", "\n"},
                       row{"100\n", "100\n"}, row{"100\n3 7", "100\n3 7"}}) {
    CHECK(marker_in(r.text).directory == r.directory);
    CHECK(marker_in(r.text).begun_by == save_id{});
  }
  // Less than the right numbers is older than what it should be, and completes what it did.
  CHECK(marker_in("100\nx y\n").begun_by == save_id{});
  CHECK(marker_in("100\n3\n").begun_by == save_id{generation{3}, 0});
}

TEST_CASE("a marker's name is its step's number and nothing else") {
  CHECK(step_of_marker(marker_of(0)) == 0);
  CHECK(step_of_marker(".troupe/steps/100") == 100);
  for (const char* other : {".troupe/steps/007", ".troupe/steps/x", ".troupe/steps/-1",
                            ".troupe/steps", ".troupe/steps/1/2", ".troupe/steps/1 ",
                            ".troupe/steps/", ".troupe/steps/99999999999999999999"})
    CHECK_FALSE(step_of_marker(other));
}
