#include "runtime/base/filled.hpp"

#include <doctest/doctest.h>

using troupe::filled;

TEST_CASE("words are filled into lines behind a margin") {
  CHECK(filled("", 2, 10) == "");
  CHECK(filled("one two three four", 0, 9) == "one two\nthree\nfour");
  CHECK(filled("one two three four", 4, 13) == "one two\n    three\n    four");
  CHECK(filled("exactly 9", 0, 9) == "exactly 9");
  CHECK(filled("exactly 9 ", 0, 9) == "exactly 9\n");
}

TEST_CASE("a word that is too long has a line of its own") {
  CHECK(filled("a muchtoolong b", 1, 6) == "a\n muchtoolong\n b");
}

TEST_CASE("characters count, not bytes") {
  CHECK(filled("\u00b5\u00b5\u00b5 \u00b5", 0, 5) == "\u00b5\u00b5\u00b5 \u00b5");
}
