#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/socket_table_core.hpp"
#include "runtime/os/stacks/syscall_names.hpp"

#include <doctest/doctest.h>

#include <string>

#include <sys/syscall.h>

using namespace troupe;
using namespace troupe::os;
using namespace std::chrono_literals;

TEST_CASE("a thread's name may hold what ends it") {
  const auto s =
      parse_stat("7 (a) R (b) S 1 7 7 0 -1 4194304 1 2 3 4 50 60 0 0 20 0 3 0 900 1 2\n");
  REQUIRE(s);
  CHECK(s->name == "a) R (b");
  CHECK(s->state == 'S');
  CHECK(s->cpu_ticks == 110);
  CHECK(s->started == 900);
  CHECK(!s->exits);
}

TEST_CASE("a process that is on its way out says so in its flags") {
  const auto s = parse_stat("7 (a) R 1 7 7 0 -1 4228108 1 2 3 4 50 60 0 0 20 0 3 0 900 1 2\n");
  REQUIRE(s);
  CHECK(s->exits);
}

TEST_CASE("what is no line of stat is none") {
  for (const auto* text : {"", "7", "7 (a", "7 (a)", "7 (a) S", ")a(", "7 (a) SS 1 2 3"})
    CHECK(!parse_stat(text));
}

TEST_CASE("mappings, and lines that are none") {
  const auto found = parse_mappings(
      "55d0-55d1 r-xp 00001000 fe:02 77                         /usr/bin/python3.11 (deleted)\n"
      "nonsense\n"
      "7f00-7e00 rw-p 00000000 00:00 0\n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]");
  REQUIRE(found.size() == 2);
  CHECK(found[0].begin == 0x55d0);
  CHECK(found[0].offset == 0x1000);
  CHECK(found[0].inode == 77);
  CHECK(found[0].is_executable);
  CHECK(!found[0].is_writable);
  CHECK(found[0].path == "/usr/bin/python3.11 (deleted)");
  CHECK(found[1].path == "[stack]");
  CHECK(found[1].is_writable);
}

TEST_CASE("connections whose peer is silent, and not those that have only just sent") {
  const std::string head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                           "retrnsmt   uid  timeout inode\n";
  const std::string four =
      "   0: 0100007F:7375 0300000A:733C 01 00000200:00000000 01:00000014 00000005  0  0 4711 2\n"
      "   1: 0100007F:7375 0300000A:733D 01 00000200:00000000 01:00000014 00000000  0  0 4712 2\n"
      "   2: 0100007F:7375 0300000A:733E 01 00000000:00000000 02:00000014 00000000  0  0 4713 2\n"
      "   3: broken\n";
  const std::string six =
      "   0: 00000000000000000000000001000000:0016 B80D0120000000000000000003000000:733C 01 "
      "00000001:00000000 01:00000014 00000002  0  0 4714 2\n"
      "   1: 0000000000000000FFFF00000100007F:0016 0000000000000000FFFF00000300000A:0050 01 "
      "00000001:00000000 01:00000014 00000002  0  0 4715 2\n";
  CHECK(stuck_sockets(head + four) == std::vector<stuck_socket>{{4711, "10.0.0.3:29500", 512, 5}});
  CHECK(stuck_sockets(head + six) ==
        std::vector<stuck_socket>{{4714, "[2001:db8:0:0:0:0:0:3]:29500", 1, 2},
                                  {4715, "10.0.0.3:80", 1, 2}});
}

TEST_CASE("system calls have the kernel's names, as this kind of machine numbers them") {
  CHECK(syscall_name(SYS_read) == "read");
  CHECK(syscall_name(SYS_futex) == "futex");
  CHECK(syscall_name(SYS_clock_nanosleep) == "clock_nanosleep");
  CHECK(syscall_name(SYS_futex_waitv) == "futex_waitv");
  CHECK(syscall_name(SYS_set_mempolicy) == "set_mempolicy");
  CHECK(syscall_name(9'999) == "system call 9999");
}
