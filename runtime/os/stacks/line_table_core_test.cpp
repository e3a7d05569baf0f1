#include "runtime/os/stacks/line_table_core.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace troupe::os;

// The tables are those that the compilers of the versions made of
//   1 def f(x):
//   2     y = 1
//   3     return [
//   4         x,
//   5         y]

TEST_CASE("pairs: steps of address and of line") {
  const std::string table{'\0', '\1', '\4', '\2', '\2', '\1', '\2', '\xfe'};
  CHECK(line_at(line_table::pairs, table, 1, 0) == 2);
  CHECK(line_at(line_table::pairs, table, 1, 2) == 2);
  CHECK(line_at(line_table::pairs, table, 1, 4) == 4);
  CHECK(line_at(line_table::pairs, table, 1, 6) == 5);
  CHECK(line_at(line_table::pairs, table, 1, 8) == 3);
  CHECK(line_at(line_table::pairs, table, 1, 10) == 3);
}

TEST_CASE("ranges: lengths and steps, some without a line") {
  const std::string table{'\4', '\1', '\2', '\2', '\2', '\x80', '\4', '\xff'};
  CHECK(line_at(line_table::ranges, table, 1, 0) == 2);
  CHECK(line_at(line_table::ranges, table, 1, 4) == 4);
  CHECK(line_at(line_table::ranges, table, 1, 6) == 0);
  CHECK(line_at(line_table::ranges, table, 1, 8) == 3);
  CHECK(line_at(line_table::ranges, table, 1, 12) == 0);
}

TEST_CASE("entries: short, on one line, long, without columns and without a line") {
  const std::string table{
      '\x80', '\0',                   // short, the same line
      '\xd8', '\4', '\5',             // one line on
      '\xf1', '\4', '\0', '\1', '\1', // long, two units, two lines on
      '\xe8', '\3',                   // without columns, a line back
      '\xf8',                         // without a line
  };
  CHECK(line_at(line_table::entries, table, 1, 0) == 1);
  CHECK(line_at(line_table::entries, table, 1, 2) == 2);
  CHECK(line_at(line_table::entries, table, 1, 4) == 4);
  CHECK(line_at(line_table::entries, table, 1, 6) == 4);
  CHECK(line_at(line_table::entries, table, 1, 8) == 3);
  CHECK(line_at(line_table::entries, table, 1, 10) == 0);
  CHECK(line_at(line_table::entries, table, 1, 12) == 0);
}

TEST_CASE("a function that has not begun is at its first line") {
  for (const auto kind : {line_table::pairs, line_table::ranges, line_table::entries})
    CHECK(line_at(kind, "", 7, -2) == 7);
}

TEST_CASE("any bytes are a table") {
  std::mt19937 chance(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string table(chance() % 40, '\0');
    for (auto& c : table)
      c = static_cast<char>(chance());
    for (const auto kind : {line_table::pairs, line_table::ranges, line_table::entries})
      (void)line_at(kind, table, chance(), static_cast<std::int64_t>(chance() % 400) - 4);
  }
}
