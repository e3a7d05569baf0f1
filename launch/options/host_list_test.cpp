#include "launch/options/host_list.hpp"

#include "runtime/base/limits.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

using names = std::vector<std::string>;

TEST_CASE("a host list is names, with numbers in brackets") {
  CHECK(*parse_host_list("a") == names{"a"});
  CHECK(*parse_host_list(" a, b.cluster ,c_1\n") == names{"a", "b.cluster", "c_1"});
  CHECK(*parse_host_list("gpu[1-3]") == names{"gpu1", "gpu2", "gpu3"});
  CHECK(*parse_host_list("gpu[008-010,2],x") == names{"gpu008", "gpu009", "gpu010", "gpu2", "x"});
  CHECK(*parse_host_list("r[1-2]n[0,07]-ib") ==
        names{"r1n0-ib", "r1n07-ib", "r2n0-ib", "r2n07-ib"});
  CHECK(*parse_host_list("[1-2]") == names{"1", "2"});
  CHECK(parse_host_list("n[00000-16383]")->size() == limits::nodes_max);
}

TEST_CASE("what is no host list is told, and nothing large is made of it") {
  for (const auto* list : {"",
                           ",",
                           "a,",
                           ",a",
                           "a,,b",
                           "a b",
                           "a[1",
                           "a]",
                           "a[]",
                           "a[-1]",
                           "a[1-]",
                           "a[3-1]",
                           "a[x]",
                           "a[1,]",
                           "a[[1]]",
                           "a[1]]",
                           "a[1-9999999999]",
                           "a[0000000001]",
                           "a[1-0x3]",
                           "a/b",
                           "::1",
                           "a[0-16384]",
                           "a[0-999999999]",
                           "a[0-999999999]b[0-999999999]c[0-999999999]d[0-999999999]",
                           "a[0-99]b[0-99]c[0-99]",
                           "a[1][1][1][1][1]",
                           "n[0-16383],m"}) {
    const auto parsed = parse_host_list(list);
    CHECK_MESSAGE(!parsed, list);
    if (!parsed)
      CHECK(parsed.error().what.size() < 200);
  }
  CHECK_FALSE(parse_host_list(std::string(300, 'a')));
  CHECK_FALSE(parse_host_list(std::string(100'000, ',')));
}
