#include "launch/shell/columns.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

TEST_CASE("columns: ASCII, box drawing, marks, wide characters, bytes that are no UTF-8") {
  struct row {
    const char* text;
    std::size_t columns;
  };
  for (const row& r : {row{"", 0}, row{"node-1", 6}, row{"├ └│", 4}, row{"Zoë", 3},
                       row{"e\u0301", 1}, row{"節点", 4}, row{"ok 🚀", 5}, row{"\xff\xc3", 2}})
    CHECK_MESSAGE(columns_of(r.text) == r.columns, r.text);
}

TEST_CASE("columns: what is too long ends with an ellipsis, and no character is cut in two") {
  struct row {
    const char* text;
    std::size_t columns;
    const char* cut;
  };
  for (const row& r :
       {row{"rank 3", 6, "rank 3"}, row{"rank 3", 5, "rank…"}, row{"rank 3", 1, "…"},
        row{"rank 3", 0, ""}, row{"節点", 3, "節…"}, row{"節点", 2, "…"}, row{"Zoë!", 3, "Zo…"}})
    CHECK(cut_to(r.text, r.columns) == r.cut);
  CHECK(fitted("節", 4) == "節  ");
  CHECK(fitted("rank 13", 6) == "rank …");
}
