#include "runtime/os/memory/huge_pages.hpp"
#include "runtime/os/memory/memory_room.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace troupe::os;
namespace fs = std::filesystem;

namespace {

/// A machine's files, as far as they are of interest.
class machine {
 public:
  machine() : root_(fs::temp_directory_path() / "troupe-memory-XXXXXX") {
    auto name = root_.string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root_ = name;
    write("proc/meminfo",
          "MemTotal:       65536000 kB\nMemAvailable:   4194304 kB\nMemFree: 1 kB\n");
  }
  ~machine() { fs::remove_all(root_); }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  troupe::result<memory_room> room() const { return find_memory_room(root_); }

 private:
  fs::path root_;
};

constexpr std::uint64_t mib = 1u << 20;

/// How much of the mapping that begins there is in memory.
std::uint64_t resident(const char* begin) {
  std::ifstream file("/proc/self/smaps");
  const auto address = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(begin));
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    found = found || line.compare(0, address.size(), address) == 0;
    if (found && line.compare(0, 4, "Rss:") == 0)
      return std::stoull(line.substr(4)) << 10;
  }
  return 0;
}

bool aligned(const void* place) {
  return reinterpret_cast<std::uintptr_t>(place) % huge_page_bytes == 0;
}

} // namespace

TEST_CASE("without control groups the machine's available memory is the bound") {
  const machine m;
  REQUIRE(m.room());
  CHECK(m.room()->bytes == 4096 * mib);
  CHECK(m.room()->bound == "the machine has no more available");
}

TEST_CASE("a machine that does not say what is available is refused with the file's name") {
  machine m;
  m.write("proc/meminfo", "MemTotal: 1 kB\n");
  REQUIRE_FALSE(m.room());
  CHECK(m.room().error().what.find("proc/meminfo does not say") != std::string::npos);
}

TEST_CASE("the tightest group on the way up is the bound, file pages it can drop aside") {
  machine m;
  m.write("proc/self/cgroup", "0::/pod/container\n");
  m.write("sys/fs/cgroup/pod/memory.max", "1073741824\n");    // 1 GiB
  m.write("sys/fs/cgroup/pod/memory.current", "943718400\n"); // 900 MiB
  m.write("sys/fs/cgroup/pod/memory.stat",
          "anon 1\ninactive_file 419430400\nactive_file 7\n"); // 400
  m.write("sys/fs/cgroup/pod/container/memory.max", "max\n");
  m.write("sys/fs/cgroup/pod/container/memory.current", "943718400\n");
  REQUIRE(m.room());
  CHECK(m.room()->bytes == 524 * mib);
  CHECK(m.room()->bound.find("pod/memory.max is 1024 MiB") != std::string::npos);

  m.write("sys/fs/cgroup/pod/container/memory.max", "629145600\n"); // 600 MiB, all of it used
  CHECK(m.room()->bytes == 0);
  CHECK(m.room()->bound.find("container/memory.max is 600 MiB") != std::string::npos);
}

TEST_CASE("in a container that sees its group as the mount, and a path from outside") {
  machine m;
  m.write("proc/self/cgroup", "0::/kubepods/burstable/pod1/abc\n");
  m.write("sys/fs/cgroup/memory.max", "67108864\n");
  m.write("sys/fs/cgroup/memory.current", "0\n");
  REQUIRE(m.room());
  CHECK(m.room()->bytes == 64 * mib);
}

TEST_CASE("version 1 of control groups") {
  machine m;
  m.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n");
  m.write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "134217728\n");
  m.write("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "67108864\n");
  m.write("sys/fs/cgroup/memory/docker/1/memory.stat",
          "inactive_file 1\ntotal_inactive_file 1048576\n");
  REQUIRE(m.room());
  CHECK(m.room()->bytes == 65 * mib);
}

TEST_CASE("the machine this runs on says how much room there is") {
  REQUIRE(find_memory_room());
  CHECK(find_memory_room()->bytes > mib);
}

TEST_CASE("what one process writes another one reads, and nothing has a name") {
  auto mine = shared_memory::create("troupe-test", 3 * mib + 5);
  REQUIRE(mine);
  CHECK(mine->bytes() == 3 * mib + 5);
  std::memcpy(mine->data() + 3 * mib, "there", 5);

  auto theirs = shared_memory::adopt(dup(mine->descriptor()));
  REQUIRE(theirs);
  CHECK(theirs->bytes() == 3 * mib + 5);
  CHECK(std::string(theirs->data() + 3 * mib, 5) == "there");

  *mine = shared_memory();
  CHECK(std::string(theirs->data() + 3 * mib, 5) == "there");
}

TEST_CASE("memory grows with what is in it, and can be given back") {
  auto memory = shared_memory::create("troupe-test", 0);
  REQUIRE(memory);
  CHECK(memory->bytes() == 0);
  REQUIRE(memory->grow(mib));
  std::memcpy(memory->data() + mib - 4, "here", 4);
  REQUIRE(memory->grow(40 * mib));
  CHECK(std::string(memory->data() + mib - 4, 4) == "here");
  memory->data()[40 * mib - 1] = 1;
  REQUIRE(memory->show(mib));
  const auto other = shared_memory::adopt(dup(memory->descriptor()));
  REQUIRE(other);
  CHECK(other->bytes() == mib);
  REQUIRE(memory->clear());
  CHECK(memory->bytes() == 0);
  REQUIRE(memory->grow(mib));
  CHECK(memory->data()[mib - 4] == 0);
}

TEST_CASE("pages are there after populate, and not before") {
  const auto memory = shared_memory::create("troupe-test", 8 * mib);
  REQUIRE(memory);
  const auto there = [&] { return resident(memory->data()); };
  CHECK(there() == 0);
  std::atomic<bool> stop{true};
  REQUIRE(memory->populate(8 * mib, stop));
  CHECK(there() == 0);
  stop = false;
  REQUIRE(memory->populate(4 * mib, stop));
  CHECK(there() == 4 * mib);
}

TEST_CASE("memory lies where huge pages can be mapped, in any process and however it grew") {
  auto memory = shared_memory::create("troupe-test", 0);
  REQUIRE(memory);
  for (const auto bytes : {2 * mib, 5 * mib + 12345, 64 * mib, 64 * mib + 1}) {
    REQUIRE(memory->grow(bytes));
    CHECK(aligned(memory->data()));
    memory->data()[bytes - 1] = 1;
    const auto theirs = shared_memory::adopt(dup(memory->descriptor()));
    REQUIRE(theirs);
    CHECK(aligned(theirs->data()));
    CHECK(theirs->data()[bytes - 1] == 1);
  }
}

TEST_CASE("the kernel's next choice for a file lies where huge pages can be mapped") {
  const auto memory = shared_memory::create("troupe-test", 70 * mib);
  REQUIRE(memory);
  const auto map = [&](std::uint64_t bytes) {
    auto* const at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, memory->descriptor(), 0);
    REQUIRE(at != MAP_FAILED);
    return at;
  };
  for (const auto bytes : {2 * mib, 64 * mib, 64 * mib + 4096, 69 * mib + 77}) {
    auto* const unlike = map(bytes + 4096 * 3); // so that chance does not make the next one aligned
    void* mapped = nullptr;
    {
      const aligned_choice choice(memory->descriptor(), bytes);
      REQUIRE(choice.made());
      mapped = map(bytes);
      CHECK(aligned(mapped));
    }
    munmap(mapped, bytes);
    munmap(unlike, bytes + 4096 * 3);
  }
}

TEST_CASE("where there is no choice nothing is said to have been made") {
  const auto memory = shared_memory::create("troupe-test", mib);
  REQUIRE(memory);
  CHECK_FALSE(aligned_choice(memory->descriptor(), mib).made()); // less than a huge page
  CHECK_FALSE(aligned_choice(-1, 8 * mib).made());
  CHECK_FALSE(aligned_choice(memory->descriptor(), std::uint64_t{1} << 60).made());
}

TEST_CASE("moving to huge pages keeps what is there, and so does filling") {
  const auto memory = shared_memory::create("troupe-test", 8 * mib);
  REQUIRE(memory);
  for (std::uint64_t i = 0; i < 8 * mib; ++i)
    memory->data()[i] = static_cast<char>(i * 2654435761u >> 13);
  const std::string before(memory->data(), 8 * mib);
  const std::atomic<bool> stop{false};
  const auto moved = move_to_huge_pages(memory->data(), 8 * mib, stop);
  CHECK(moved % huge_page_bytes == 0); // nothing, where the system has none
  CHECK(std::string(memory->data(), 8 * mib) == before);
  REQUIRE(memory->populate(8 * mib, stop));
  CHECK(std::string(memory->data(), 8 * mib) == before);
}

TEST_CASE("a descriptor of something else is refused in words") {
  const auto made = shared_memory::adopt(open("/dev/null", O_RDONLY));
  REQUIRE_FALSE(made);
  CHECK(made.error().what.find("is no shared memory") != std::string::npos);
}
