#include "diag/stacks/flame_graph.hpp"

#include "diag/stacks/escaped.hpp"
#include "diag/stacks/testing/some_stacks.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::diag;
using namespace troupe::diag::testing;

namespace {

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

} // namespace

TEST_CASE("no name of a function gets out of its text") {
  merged_stacks m;
  const std::string bad = "</title><script>alert(1)</script>]]>&amp;\"'\x01\xff";
  m.add(process(0, 1, {bad}));
  const auto svg = svg_of(m.python, m, {"merged " + bad});
  CHECK(occurrences(svg, "<script") == 1);
  CHECK(occurrences(svg, "]]>") == 1);
  CHECK(svg.find('\x01') == std::string::npos);
  CHECK(svg.find('\xff') == std::string::npos);
  CHECK(svg.find("&lt;/title&gt;&lt;script&gt;alert(1)") != std::string::npos);
}

TEST_CASE("each frame is drawn as wide as its different stacks, the rarest at the left and red") {
  merged_stacks m;
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    m.add(process(rank, 101, {"main", rank == 42 ? "read" : "all_reduce"}));
  const auto svg = svg_of(m.python, m, {"merged", 1020});
  CHECK(svg.find("100 of 101 ranks (0-99); 2 different stacks of 100 threads; nothing of 100") !=
        std::string::npos);
  CHECK(
      svg.find("<g class=\"f few\"><title>read@train.py@42|0-41/43-100\n1 of 100 ranks, 1 thread, "
               "1 different stack; line 7</title><rect x=\"343.33\" y=\"84\" width=\"333.33\"") !=
      std::string::npos);
  CHECK(
      svg.find("<g class=\"f\"><title>all_reduce@train.py@0-41/43-99|42/100\n99 of 100 ranks, ") !=
      std::string::npos);
  CHECK(occurrences(svg, "<g class=") == 4);
}

TEST_CASE("of more frames than a browser can move the widest are drawn, and it is told") {
  merged_stacks m;
  for (std::uint32_t rank = 0; rank < limits::drawn_frames_max + 10; ++rank)
    m.add(process(rank, limits::ranks_max, {"main", "f" + std::to_string(rank)}));
  const auto svg = svg_of(m.python, m, {"merged"});
  CHECK(occurrences(svg, "<g class=") == 1);
  CHECK(svg.find(" frames are too narrow to be drawn.") != std::string::npos);
}

TEST_CASE("nothing to draw is a picture, too") {
  const merged_stacks none;
  CHECK(svg_of(none.python, none, {"merged"}).find("0 of 0 ranks") != std::string::npos);
}

TEST_CASE("characters that are none become the one that says so") {
  CHECK(for_xml("a\x1f"
                "b\xed\xa0\x80") == "a\xef\xbf\xbd"
                                    "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(for_xml("größer als 日本 🙂") == "größer als 日本 🙂");
  CHECK(for_xml("\xc0\xaf\xf4\x90\x80\x80\xe2\x82").find_first_not_of("\xef\xbf\xbd") ==
        std::string::npos);
  CHECK(for_json("a\"b\\c\n<") == "a\\\"b\\\\c\\u000a\\u003c");
  CHECK(for_folded("a;b\nc") == "a:b c");
}
