#include "launch/doctor/memory.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch::doctor;

namespace {

constexpr std::uint64_t MiB = 1u << 20;

shared_mount_facts mount_with(std::uint64_t available, std::uint32_t workers = 1) {
  shared_mount_facts seen;
  seen.workers = workers;
  seen.size = 64 * MiB;
  seen.available = available;
  return seen;
}

} // namespace

TEST_SUITE("doctor: memory") {
  TEST_CASE("each worker needs some before its first tensor") {
    memory_facts seen{4, 2'048 * MiB, "memory.max is 2048 MiB"};
    CHECK(judge(seen).how == grade::ok);
    CHECK(judge(seen).found == "2.0 GiB may still be used (memory.max is 2048 MiB)");
    seen.workers = 5;
    CHECK(judge(seen).how == grade::warning);
    CHECK(judge(seen).costs.find("5 workers with torch take 2.5 GiB") == 0);
    seen.room = std::nullopt;
    CHECK(judge(seen).how == grade::note);
  }

  TEST_CASE("/dev/shm: none, too small for anything, small for so many workers, enough") {
    struct row {
      std::uint64_t available;
      std::uint32_t workers;
      grade expected;
    };
    for (const auto& r : {row{16 * MiB - 1, 1, grade::error}, row{16 * MiB, 1, grade::warning},
                          row{128 * MiB - 1, 1, grade::warning}, row{128 * MiB, 1, grade::ok},
                          row{128 * MiB, 2, grade::warning}, row{1'024 * MiB, 8, grade::ok}}) {
      CAPTURE(r.available);
      CAPTURE(r.workers);
      const auto f = judge(mount_with(r.available, r.workers));
      CHECK(f.how == r.expected);
      CHECK(f.remedy.empty() == (r.expected == grade::ok));
    }
    auto none = mount_with(0);
    none.why_not = "No such file or directory";
    CHECK(judge(none).how == grade::error);
    CHECK(judge(none).remedy.find("mount -t tmpfs") != std::string::npos);
  }

  TEST_CASE("a /dev/shm that is larger than the memory that may be used is told of") {
    auto seen = mount_with(4'096 * MiB);
    seen.room = 4'096 * MiB;
    CHECK(judge(seen).how == grade::ok);
    seen.room = 2'048 * MiB;
    CHECK(judge(seen).how == grade::note);
    CHECK(judge(seen).costs.find("2.0 GiB") != std::string::npos);
  }

  TEST_CASE("what checkpoints lose without each of the system's calls") {
    CHECK(judge(snapshot_facts{}).at(0).how == grade::ok);
    const auto all = judge(snapshot_facts{"no memfd", "no userfaultfd", "no io_uring here"});
    REQUIRE(all.size() == 3);
    CHECK(all[0].how == grade::warning);
    CHECK(all[1].how == grade::note);
    CHECK(all[2].how == grade::note);
    CHECK(all[1].costs.find("copy_on_write=True") == 0);
    CHECK(all[2].found == "no io_uring here");
  }

  TEST_CASE("this machine can be looked at") {
    const auto seen = look_at_memory({});
    REQUIRE(seen.room);
    CHECK(*seen.room > 0);
    CHECK(look_at_snapshots().no_memory.empty());
  }
}
