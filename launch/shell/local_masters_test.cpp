#include "launch/shell/local_masters.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

// As Linux prints them on a little-endian machine.
const std::string table =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:72D8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 "
    "1 0 100 0 0 10 0\n"
    "   1: 00000000:72D9 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 "
    "1 0 100 0 0 10 0\n"
    "   2: 0100007F:72D8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 13 "
    "1 0 20 4 30 10 -1\n"
    "   3: 0100007F:72DA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14 "
    "1 0 100 0 0 10 0\n"
    "   0: 00000000000000000000000000000000:72DB 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 15 1\n"
    "   1: B80D0120000000000000000001000000:72DC 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 16 1\n";

} // namespace

TEST_CASE("local masters: only what listens, and belongs to one of the processes") {
  CHECK(listening_places(table, {11, 12, 13}) ==
        std::vector<ports::endpoint>{{"127.0.0.1", 29400}, {"127.0.0.1", 29401}});
  CHECK(listening_places(table, {15, 16}) ==
        std::vector<ports::endpoint>{{"2001:db8::1", 29404}, {"::1", 29403}});
  CHECK(listening_places(table, {}).empty());
}

TEST_CASE("local masters: a table that the kernel would not print finds nothing") {
  for (const auto* odd :
       {"", "\n\n", "a b c", " 0: XX:YY 0:0 0A 0 0 0 0 0 11", " 0: 0100007F:72D8 00000000:0000 0A",
        " 0: 0100007F72D8 0:0 0A 0 0 0 0 0 11"})
    CHECK(listening_places(odd, {11}).empty());
}

TEST_CASE("local masters: a place without processes has none") {
  CHECK(possible_masters("/nonexistent").empty());
}
