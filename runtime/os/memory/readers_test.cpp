#include "runtime/os/memory/readers.hpp"

#include "runtime/os/memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe::os;

namespace {

constexpr std::uint64_t some_bytes = 1u << 20;

shared_memory something() {
  auto made = shared_memory::create("troupe-test", some_bytes);
  REQUIRE(made);
  return std::move(*made);
}

bool nobody_reads(const shared_memory& memory) {
  return sole_reader::open(memory.descriptor()).has_value();
}

/// Whether this system says it at all: an old kernel, or a sandbox, does not.
bool is_known() {
  const auto known = nobody_reads(something());
  if (!known)
    MESSAGE("this system does not tell readers of memory: nothing is tested");
  return known;
}

int opened(const shared_memory& memory, int flags) {
  return ::open(fmt::format("/proc/self/fd/{}", memory.descriptor()).c_str(), flags | O_CLOEXEC);
}

char* mapped(int descriptor, int flags) {
  auto* const at = mmap(nullptr, some_bytes, PROT_READ, flags, descriptor, 0);
  REQUIRE(at != MAP_FAILED);
  return static_cast<char*>(at);
}

/// A copy of this process, which does nothing until this goes.
class forked {
 public:
  forked() {
    REQUIRE(pipe(end_.data()) == 0);
    child_ = fork();
    if (child_ == 0) {
      close(end_[1]);
      char nothing = 0;
      _exit(static_cast<int>(read(end_[0], &nothing, 1)));
    }
    REQUIRE(child_ > 0);
  }
  forked(const forked&) = delete;
  forked& operator=(const forked&) = delete;
  ~forked() {
    close(end_[1]);
    close(end_[0]);
    waitpid(child_, nullptr, 0);
  }

 private:
  std::array<int, 2> end_{};
  pid_t child_ = -1;
};

} // namespace

TEST_CASE("a reader is there until it goes") {
  if (!is_known())
    return;
  const auto memory = something();
  {
    auto one = memory_reader::open(memory.descriptor());
    REQUIRE(one);
    CHECK_FALSE(nobody_reads(memory));
    const auto moved = std::move(*one);
    CHECK_FALSE(nobody_reads(memory));
  }
  CHECK(nobody_reads(memory));
}

TEST_CASE("what was opened and closed is read as long as any of it is mapped") {
  if (!is_known())
    return;
  const auto memory = something();
  for (const auto flags : {MAP_PRIVATE, MAP_SHARED}) {
    const auto file = opened(memory, O_RDONLY);
    REQUIRE(file >= 0);
    auto* const at = mapped(file, flags);
    close(file);
    CHECK_FALSE(nobody_reads(memory));
    munmap(at, some_bytes / 2);
    CHECK_FALSE(nobody_reads(memory));
    munmap(at + some_bytes / 2, some_bytes / 2);
    CHECK(nobody_reads(memory));
  }
}

TEST_CASE("a process that has opened memory to write it reads it as well") {
  if (!is_known())
    return;
  const auto memory = something();
  const auto file = opened(memory, O_RDWR);
  REQUIRE(file >= 0);
  CHECK_FALSE(nobody_reads(memory));
  close(file);
  CHECK(nobody_reads(memory));
}

TEST_CASE("a process that maps a descriptor it was given is not counted") {
  if (!is_known())
    return;
  const auto memory = something();
  auto* const at = mapped(memory.descriptor(), MAP_PRIVATE);
  CHECK(nobody_reads(memory));
  munmap(at, some_bytes);
}

TEST_CASE("a forked child reads what was mapped, though its parent does not any more") {
  if (!is_known())
    return;
  const auto memory = something();
  const auto file = opened(memory, O_RDONLY);
  REQUIRE(file >= 0);
  auto* const at = mapped(file, MAP_PRIVATE);
  close(file);
  {
    const forked child;
    munmap(at, some_bytes);
    CHECK_FALSE(nobody_reads(memory));
  }
  CHECK(nobody_reads(memory));
}

TEST_CASE("a child that is forked while there is a sole reader keeps no other out") {
  if (!is_known())
    return;
  const auto memory = something();
  std::optional<forked> child;
  {
    const auto sole = sole_reader::open(memory.descriptor());
    REQUIRE(sole);
    child.emplace();
  }
  const auto file = opened(memory, O_RDONLY | O_NONBLOCK);
  CHECK(file >= 0);
  close(file);
  CHECK_FALSE(nobody_reads(memory)); // as far as can be seen: the child has it open
  child.reset();
  CHECK(nobody_reads(memory));
}

TEST_CASE("an open while there is a sole reader waits, and does no harm") {
  if (!is_known())
    return;
  const auto memory = something();
  std::optional<troupe::result<memory_reader>> late;
  std::thread comes;
  {
    const auto sole = sole_reader::open(memory.descriptor());
    REQUIRE(sole);
    CHECK_FALSE(nobody_reads(memory)); // a second one is told at once
    CHECK(opened(memory, O_RDONLY | O_NONBLOCK) < 0);
    CHECK(errno == EWOULDBLOCK);
    comes = std::thread([&memory, &late] { late = memory_reader::open(memory.descriptor()); });
  }
  comes.join();
  REQUIRE(late);
  CHECK(late->has_value());
  CHECK_FALSE(nobody_reads(memory));
  late.reset();
  CHECK(nobody_reads(memory));
}

TEST_CASE("of what is no memory nothing is known") {
  CHECK_FALSE(memory_reader::open(-1));
  CHECK_FALSE(sole_reader::open(-1));
}
