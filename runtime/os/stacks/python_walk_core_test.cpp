#include "runtime/os/stacks/python_walk_core.hpp"

#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/testing/fake_python.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace troupe;
using namespace troupe::os;

namespace {

python_walk walk(fake_python& python) {
  return walk_python(python.memory, python.runtime, python.layout);
}

} // namespace

TEST_CASE("the frames of every thread, in every version") {
  for (std::uint32_t minor = 8; minor <= 12; ++minor) {
    CAPTURE(minor);
    auto python = two_threads(minor);
    const auto found = walk(python);
    CHECK(found.missing.empty());
    REQUIRE(found.threads.size() == 2);
    const auto& loader = found.threads[0];
    const auto& main = found.threads[1];
    CHECK(main.frames ==
          std::vector<diag::stack_frame>{{"waits", "worker.py", 20}, {"run", "main.py", 10}});
    CHECK(main.handle == 0x7000);
    CHECK(main.native_id == (minor >= 11 ? 101 : 0));
    CHECK(main.holds_lock);
    CHECK(!main.is_loader);
    CHECK(main.missing.empty());
    CHECK(!loader.holds_lock);
    CHECK(loader.is_loader);
    CHECK(loader.loader_worker == 7);
  }
}

TEST_CASE("the version in names of interpreters and of their libraries") {
  CHECK(minor_in_name("libpython3.10.so.1.0") == 10);
  CHECK(minor_in_name("/opt/env/bin/python3.8") == 8);
  CHECK(minor_in_name("lib/python3.9") == 9);
  CHECK(minor_in_name("python3.7m") == 7);
  CHECK(minor_in_name("libpython3.13t.so.1.0") == 13);
  for (const char* none : {"", "python3", "libpython3.so", "python3.", "python3.x", "trainer",
                           "python3.123", "python3.99999999999"})
    CHECK_MESSAGE(!minor_in_name(none), none);
}

TEST_CASE("a version among constants, alone or as the end of a longer one") {
  const auto shown = [](std::string_view text, char before) {
    const auto found = release_in_constant(text, before);
    return found ? to_string(*found) : "none";
  };
  CHECK(shown("3.8.18", '\0') == "3.8.18");
  CHECK(shown("3.10.0rc1+", '\0') == "3.10.0");
  // The end of "/root/.pyenv/versions/3.8.18" and of "Python-3.9.2".
  CHECK(shown("3.8.18", '/') == "3.8.18");
  CHECK(shown("3.9.2", '-') == "3.9.2");
  // The end of "13.8.18" and of "2.3.8.18" are none.
  CHECK(shown("3.8.18", '1') == "none");
  CHECK(shown("3.8.18", '.') == "none");
  for (const char* none : {"", "3.", "3.8", "3.8.", "3.8.x", "3.8.18/lib", "4.8.18",
                           "3.8.18 (main)", "3.99999999999.1", "3.8.1234567890123"})
    CHECK_MESSAGE(shown(none, '\0') == "none", none);
  CHECK(to_string(python_release{8, std::nullopt}) == "3.8");
}

TEST_CASE("an interpreter that is being finalized says so, and a frame where it is") {
  for (std::uint32_t minor = 8; minor <= 12; ++minor) {
    CAPTURE(minor);
    auto python = two_threads(minor);
    const auto before = walk(python);
    CHECK(!before.is_ending);
    CHECK(before.threads[1].position == (minor < 10 ? 2 : 4)); // of index 2
    python.memory.put<std::uint64_t>(python.runtime + python.layout.finalizing, 0x4000);
    CHECK(walk(python).is_ending);
  }
}

TEST_CASE("a version that is not known is refused by name") {
  const auto refused = layout_of({7, 0});
  REQUIRE(!refused);
  CHECK(refused.error().what.find("3.7") != std::string::npos);
}

TEST_CASE("frames that lead back to themselves end, and the thread says so") {
  fake_python python(11);
  const auto a = python.frame(python.code("a", "a.py", 1), 0);
  const auto b = python.frame(python.code("b", "b.py", 2), a);
  python.memory.put(a + python.layout.frame_previous, b);
  python.thread(0x7000, 1, b);
  const auto found = walk(python);
  REQUIRE(found.threads.size() == 1);
  CHECK(found.threads[0].frames.size() == limits::stacks_frames_max);
  CHECK(!found.threads[0].missing.empty());
}

TEST_CASE("a list of threads that is a ring ends") {
  fake_python python(12);
  const auto only = python.thread(0x7000, 1, python.frame(python.code("a", "a.py", 1), 0));
  python.memory.put(only + python.layout.thread_next, only);
  const auto found = walk(python);
  CHECK(found.threads.size() == 1);
  CHECK(!found.missing.empty());
}

TEST_CASE("a frame whose code is none ends the stack; what lies inside of it stays") {
  fake_python python(11);
  const auto outer = python.frame(python.text("no code"), 0);
  python.thread(0x7000, 1, python.frame(python.code("inner", "a.py", 1), outer));
  const auto found = walk(python);
  REQUIRE(found.threads.size() == 1);
  REQUIRE(found.threads[0].frames.size() == 1);
  CHECK(found.threads[0].frames[0].function == "inner");
  CHECK(!found.threads[0].missing.empty());
}

TEST_CASE("frames where C calls Python are no functions") {
  fake_python python(12);
  const auto outer = python.frame(python.code("outer", "a.py", 1), 0);
  const auto shim = python.frame(0, outer);
  python.memory.put<std::uint8_t>(shim + python.layout.frame_owner, 3);
  python.thread(0x7000, 1, python.frame(python.code("inner", "a.py", 2), shim));
  const auto found = walk(python);
  REQUIRE(found.threads.size() == 1);
  CHECK(found.threads[0].missing.empty());
  CHECK(found.threads[0].frames.size() == 2);
}

TEST_CASE("whatever is in the memory, reading it ends, within its bounds") {
  constexpr int rounds = 3'000, changes_max = 24;
  std::mt19937 chance(17);
  for (std::uint32_t minor = 8; minor <= 12; ++minor) {
    const auto whole = two_threads(minor);
    for (int round = 0; round < rounds; ++round) {
      auto python = whole;
      for (auto n = chance() % changes_max + 1; n > 0; --n) {
        const auto at = chance() % (python.memory.bytes.size() - 8);
        // Half of them as pointers into the memory, which lead on.
        if (chance() % 2 == 0)
          python.memory.put<std::uint64_t>(fake_memory::base + at / 8 * 8,
                                           fake_memory::base +
                                               chance() % python.memory.bytes.size());
        else
          python.memory.bytes[at] = static_cast<char>(chance());
      }
      const auto found = walk(python);
      CHECK(found.threads.size() <= limits::stacks_threads_max);
      for (const auto& t : found.threads) {
        CHECK(t.frames.size() <= limits::stacks_frames_max);
        for (const auto& f : t.frames) {
          CHECK(f.function.size() <= 4 * limits::stacks_name_max);
          CHECK(f.source.size() <= 4 * limits::stacks_path_max);
        }
      }
    }
  }
}
