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
      REQUIRE(back);
      CHECK(back->directory == directory);
      CHECK(back->begun_by == id);
    }
}

TEST_CASE("a marker of a version that did not number saves is of no save") {
  for (const char* directory : {"100", ".", "a/b c"}) {
    const auto found = marker_in(directory);
    REQUIRE(found);
    CHECK(found->directory == directory);
    CHECK(found->begun_by == save_id{});
  }
}

TEST_CASE("no byte of a marker can be changed, lost or added so that it is another save's") {
  const auto text = to_text({"100", {generation{3}, 7}});
  const auto refused = [](const std::string& damaged) {
    const auto read = marker_in(damaged);
    CHECK_MESSAGE((!read && read.error().code == errc::invalid), damaged);
  };
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      auto changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      refused(changed);
    }
  // A shorter one is an older version's, of the same directory, or none.
  for (std::size_t size = 4; size < text.size(); ++size)
    refused(text.substr(0, size));
  for (const char* other : {"\n", "100\n", "100\n3 7\n", "100\nx y 0\n", "100\n\n"})
    refused(other);
  refused(text + "\n");
  refused(text + text);
}

TEST_CASE("a marker's name is its step's number and nothing else") {
  CHECK(step_of_marker(marker_of(0)) == 0);
  CHECK(step_of_marker(".troupe/steps/100") == 100);
  for (const char* other : {".troupe/steps/007", ".troupe/steps/x", ".troupe/steps/-1",
                            ".troupe/steps", ".troupe/steps/1/2", ".troupe/steps/1 ",
                            ".troupe/steps/", ".troupe/steps/99999999999999999999"})
    CHECK_FALSE(step_of_marker(other));
}
