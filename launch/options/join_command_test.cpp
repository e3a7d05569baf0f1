#include "launch/options/join_command.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

TEST_CASE("another node joins with the same words, but for what is the first one's own") {
  const ports::endpoint master{"10.0.0.1", 29400};
  CHECK(join_command({"--nnodes", "2", "--rdzv-endpoint=10.0.0.1:29400", "t.py", "--lr", "1 e"},
                     master) ==
        "actor-launcher --nnodes 2 --rdzv-endpoint=10.0.0.1:29400 t.py --lr '1 e'");
  CHECK(join_command({"--node_rank", "0", "--node-name=a", "--local-addr", "10.0.0.1",
                      "--master-addr", "10.0.0.1", "t.py"},
                     master) == "actor-launcher --master-addr 10.0.0.1 t.py");
}

TEST_CASE("where the words do not say it, the master's endpoint is added") {
  CHECK(join_command({"--nnodes=2", "t.py"}, {"fe80::1%eth0", 5}) ==
        "actor-launcher --rdzv-endpoint '[fe80::1%eth0]:5' --nnodes=2 t.py");
}

TEST_CASE("a shell takes a word as it was") {
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("$HOME") == "'$HOME'");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("--a=b/c,d:1") == "--a=b/c,d:1");
}
