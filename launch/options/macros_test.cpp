#include "launch/options/macros.hpp"

#include <doctest/doctest.h>

using troupe::launch::substituted;

TEST_CASE("macros are put in as Python's Template does it") {
  const std::map<std::string, std::string> values{{"local_rank", "3"}};
  const auto becomes = [&](const char* text, const char* expected) {
    CHECK_MESSAGE(substituted(text, values) == expected, text);
  };
  becomes("${local_rank}", "3");
  becomes("a${local_rank}$local_rank-b", "a33-b");
  becomes("$local_ranks ${local_rank ${other} $other", "$local_ranks ${local_rank ${other} $other");
  becomes("$$ $${local_rank} $$$local_rank", "$ ${local_rank} $3");
  becomes("$ $1 ${} ${1} $", "$ $1 ${} ${1} $");
  becomes("${LOCAL_RANK}", "${LOCAL_RANK}");
}
