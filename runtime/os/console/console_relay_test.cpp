#include "runtime/os/console/console_relay.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;
namespace fs = std::filesystem;

namespace {

constexpr auto long_enough = 60s;

/// A directory for log files, and pipes in the console's place.
class console_world {
 public:
  console_world() {
    std::string pattern = (fs::temp_directory_path() / "troupe_console_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    place = pattern;
    for (auto* one : {&out_, &err_}) {
      int ends[2];
      REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
      one->read = unique_fd(ends[0]);
      one->write = unique_fd(ends[1]);
    }
    begin_anew();
  }
  /// Another relay, on the same console.
  void begin_anew() {
    relay.reset();
    auto lock = std::make_shared<std::mutex>();
    relay = std::make_unique<file_relay>(console_target{out_.write.get(), lock},
                                         console_target{err_.write.get(), lock});
  }
  ~console_world() {
    out_.read = unique_fd(); // a writer that is stuck goes on
    relay.reset();
    fs::remove_all(place);
  }

  ports::relayed_file file(const std::string& name,
                           ports::console_stream to = ports::console_stream::out) const {
    return {(place / name).string(), to, "[" + name + "]:", {}, {}};
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(place / name, std::ios::app | std::ios::binary) << text << std::flush;
  }

  std::string content(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(place / name, std::ios::binary).rdbuf();
    return all.str();
  }

  /// What the console shows next, until it is `bytes` long.
  std::string out(std::size_t bytes) { return next(out_, bytes); }
  std::string err(std::size_t bytes) { return next(err_, bytes); }

  /// The console's reader goes away.
  void hang_up() { out_.read = unique_fd(); }

  fs::path place;
  std::unique_ptr<file_relay> relay;

 private:
  struct pipe_ends {
    unique_fd read, write;
  };

  static std::string next(pipe_ends& from, std::size_t bytes) {
    std::string got;
    const auto deadline = std::chrono::steady_clock::now() + long_enough;
    std::string part(1u << 20, '\0');
    while (got.size() < bytes && std::chrono::steady_clock::now() < deadline) {
      pollfd ready{from.read.get(), POLLIN, 0};
      if (::poll(&ready, 1, 100) <= 0)
        continue;
      const auto size =
          ::read(from.read.get(), part.data(), std::min(part.size(), bytes - got.size()));
      if (size <= 0)
        break;
      got.append(part, 0, static_cast<std::size_t>(size));
    }
    return got;
  }

  pipe_ends out_, err_;
};

/// So much that no pipe holds it: numbered lines.
std::string many_lines(const std::string& name, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += name + " line " + std::to_string(i) + "\n";
  return all;
}

std::string with_prefix(const std::string& name, const std::string& lines) {
  std::string all;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    all.append("[").append(name).append("]:").append(line).append("\n");
  return all;
}

void appearing(console_world& world) {
  SUBCASE("what is written after it is followed") {
    REQUIRE(world.relay->follow(world.file("a")));
    world.write("a", "one\n");
    CHECK(world.out(8) == "[a]:one\n");
    world.write("a", "two\nthr");
    CHECK(world.out(8) == "[a]:two\n");
    world.write("a", "ee\n");
    CHECK(world.out(10) == "[a]:three\n");
  }
  SUBCASE("what was there before") {
    world.write("a", "one\n");
    REQUIRE(world.relay->follow(world.file("a")));
    CHECK(world.out(8) == "[a]:one\n");
  }
  SUBCASE("on its own stream") {
    REQUIRE(world.relay->follow(world.file("a")));
    REQUIRE(world.relay->follow(world.file("b", ports::console_stream::err)));
    world.write("b", "wrong\n");
    world.write("a", "right\n");
    CHECK(world.err(10) == "[b]:wrong\n");
    CHECK(world.out(10) == "[a]:right\n");
  }
}

void passing_through(console_world& world) {
  auto file = world.file("a");
  file.passes_through = true;
  SUBCASE("bytes come as they are") {
    const auto id = world.relay->follow(file);
    REQUIRE(id);
    world.write("a", "10%\r20%\r\xff half");
    CHECK(world.out(14) == "10%\r20%\r\xff half");
    world.write("a", " a line");
    world.relay->finish(*id);
    CHECK(world.out(7) == " a line");
    CHECK(world.relay->drain(long_enough).empty());
  }
  SUBCASE("of what was shown the end alone takes room") {
    const auto id = world.relay->follow(file);
    REQUIRE(id);
    const auto part = many_lines("a", 50'000);
    constexpr int parts = 8;
    for (int i = 0; i < parts; ++i) {
      world.write("a", part);
      CHECK(world.out(part.size()) == part);
    }
    world.relay->finish(*id);
    CHECK(world.relay->drain(long_enough).empty());
    struct stat left {};
    REQUIRE(::stat((world.place / "a").c_str(), &left) == 0);
    CHECK(static_cast<std::size_t>(left.st_size) == parts * part.size());
    CHECK(static_cast<std::size_t>(left.st_blocks) * 512 < 2u << 20);
    const auto content = world.content("a");
    CHECK(content.substr(content.size() - 60'000) == part.substr(part.size() - 60'000));
  }
}

void ending(console_world& world) {
  SUBCASE("the rest is shown, with an end to its last line") {
    const auto id = world.relay->follow(world.file("a"));
    REQUIRE(id);
    world.write("a", "one\ntwo");
    world.relay->finish(*id);
    CHECK(world.out(16) == "[a]:one\n[a]:two\n");
    CHECK(world.relay->drain(long_enough).empty());
  }
  SUBCASE("drain finishes what was not finished") {
    REQUIRE(world.relay->follow(world.file("a")));
    REQUIRE(world.relay->follow(world.file("b")));
    world.write("a", "one");
    world.write("b", "");
    CHECK(world.relay->drain(long_enough).empty());
    CHECK(world.out(8) == "[a]:one\n");
  }
  SUBCASE("a file that was renamed meanwhile is still the same file") {
    REQUIRE(world.relay->follow(world.file("a")));
    world.write("a", "one\n");
    CHECK(world.out(8) == "[a]:one\n");
    fs::rename(world.place / "a", world.place / "moved");
    world.write("moved", "two\n");
    CHECK(world.out(8) == "[a]:two\n");
  }
  SUBCASE("nothing to follow, nothing to drain") {
    CHECK(world.relay->drain(long_enough).empty());
  }
}

void order(console_world& world) {
  constexpr int count = 40'000;
  const auto a = many_lines("a", count), b = many_lines("b", count);
  REQUIRE(world.relay->follow(world.file("a")));
  REQUIRE(world.relay->follow(world.file("b")));
  std::thread writing([&] {
    for (std::size_t at = 0; at < a.size(); at += 10'007) {
      world.write("a", a.substr(at, 10'007));
      world.write("b", b.substr(at, 10'007));
    }
  });
  const auto shown = world.out(with_prefix("a", a).size() + with_prefix("b", b).size());
  writing.join();
  std::string only_a, only_b;
  std::istringstream in(shown);
  for (std::string line; std::getline(in, line);)
    (line.rfind("[a]:", 0) == 0 ? only_a : only_b).append(line).append("\n");
  CHECK(only_a == with_prefix("a", a));
  CHECK(only_b == with_prefix("b", b));
}

void long_lines(console_world& world) {
  const std::string line(3 * limits::console_line_max + 5, 'x');
  // Written before: the rest of a line is waited for, but not as long as a disk may stall.
  world.write("a", line);
  SUBCASE("pass whole, under one prefix") {
    world.write("a", "\n");
    world.write("b", "short\n");
    REQUIRE(world.relay->follow(world.file("a")));
    REQUIRE(world.relay->follow(world.file("b")));
    const auto shown = world.out(4 + line.size() + 1 + 10);
    const auto whole = "[a]:" + line + "\n";
    const bool as_expected = shown == whole + "[b]:short\n" || shown == "[b]:short\n" + whole;
    CHECK(as_expected);
  }
  SUBCASE("do not keep others waiting for ever") {
    REQUIRE(world.relay->follow(world.file("a")));
    REQUIRE(world.relay->follow(world.file("b")));
    const auto held = line.size() / limits::console_line_max * limits::console_line_max;
    CHECK(world.out(4 + held) == "[a]:" + line.substr(0, held));
    world.write("b", "short\n");
    CHECK(world.out(11) == "\n[b]:short\n");
    world.write("a", "end\n");
    CHECK(world.out(13) == "[a]:xxxxxend\n");
  }
}

void filters(console_world& world) {
  auto a = world.file("a"), b = world.file("b");
  a.needles = b.needles = {"loss", "lr"};
  a.filtered_path = b.filtered_path = (world.place / "filtered").string();
  REQUIRE(world.relay->follow(a));
  REQUIRE(world.relay->follow(b));
  world.write("a", "loss 1\nstep\n");
  CHECK(world.out(20) == "[a]:loss 1\n[a]:step\n");
  world.write("b", "lr 2\nloss");
  CHECK(world.relay->drain(long_enough).empty());
  CHECK(world.content("filtered") == "[a]:loss 1\n[b]:lr 2\n[b]:loss\n");
}

void consoles_that_do_not_take_it(console_world& world) {
  const auto much = many_lines("a", 50'000);
  SUBCASE("that is slow: what is missing is told, and where it is") {
    REQUIRE(world.relay->follow(world.file("a")));
    world.write("a", much);
    const auto left = world.relay->drain(50ms);
    REQUIRE(left.size() == 1);
    CHECK(left.front().path == (world.place / "a").string());
    CHECK(left.front().bytes > 0);
    CHECK(left.front().bytes <= much.size());
  }
  SUBCASE("that is gone") {
    REQUIRE(world.relay->follow(world.file("a")));
    world.hang_up();
    world.write("a", "one\n");
    const auto left = world.relay->drain(long_enough);
    REQUIRE(left.size() == 1);
    CHECK(left.front().bytes == 4);
  }
}

} // namespace

TEST_SUITE("console_relay") {
  TEST_CASE("a successor shows what its predecessor did not, and nothing twice") {
    console_world world;
    const auto progress = std::make_shared<std::atomic<std::uint64_t>>(0);
    auto file = world.file("a");
    file.progress = progress;
    REQUIRE(world.relay->follow(file));
    world.write("a", "one\ntwo\nthr");
    CHECK(world.out(16) == "[a]:one\n[a]:two\n");
    const auto deadline = std::chrono::steady_clock::now() + long_enough;
    while (progress->load() != 8 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    CHECK(progress->load() == 8);
    world.begin_anew();
    world.write("a", "ee\n");
    REQUIRE(world.relay->follow(file));
    CHECK(world.out(10) == "[a]:three\n");
  }

  TEST_CASE("lines appear") {
    console_world world;
    appearing(world);
  }
  TEST_CASE("a stream that passes through") {
    console_world world;
    passing_through(world);
  }

  TEST_CASE("files end") {
    console_world world;
    ending(world);
  }
  TEST_CASE("no line is lost, torn or out of order") {
    console_world world;
    order(world);
  }
  TEST_CASE("long lines") {
    console_world world;
    long_lines(world);
  }
  TEST_CASE("lines with a needle go to one file as well") {
    console_world world;
    filters(world);
  }
  TEST_CASE("consoles") {
    console_world world;
    consoles_that_do_not_take_it(world);
  }
  TEST_CASE("a file that cannot be made is refused with its name") {
    console_world world;
    const auto refused = world.relay->follow(world.file("missing/a"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("missing/a") != std::string::npos);
  }
}
