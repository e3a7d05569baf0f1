#include "launch/keeper/life_record.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;
namespace fs = std::filesystem;

namespace {

struct world {
  world() {
    std::string pattern = (fs::temp_directory_path() / "troupe-records-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    below = pattern;
    place = below / "records";
  }
  ~world() { fs::remove_all(below); }

  void bury() const { bury_the_dead(place.string()); }
  std::size_t records() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(place), fs::directory_iterator()));
  }
  void make_place(mode_t mode) const {
    fs::create_directory(place);
    REQUIRE(::chmod(place.c_str(), mode) == 0);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(place / name) << text;
  }

  fs::path below, place;
};

/// A process with the mark in its environment, which ends with the test at the latest.
class orphan {
 public:
  explicit orphan(std::string mark) : mark_(std::move(mark)), pid_(::fork()) {
    if (pid_ == 0) {
      char* const argv[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
      char* const environment[] = {mark_.data(), nullptr};
      ::execve("/bin/sleep", argv, environment);
      ::_exit(1);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!carries_it() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~orphan() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  orphan(const orphan&) = delete;
  orphan& operator=(const orphan&) = delete;

  bool lives() {
    ended_ = ended_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return !ended_;
  }
  /// Waits: a signal takes its time.
  bool was_killed() {
    int how = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!ended_ && std::chrono::steady_clock::now() < deadline) {
      ended_ = ::waitpid(pid_, &how, WNOHANG) == pid_;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ended_ && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
  }

 private:
  bool carries_it() const {
    std::ifstream file(fmt::format("/proc/{}/environ", pid_), std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    return all.find(mark_) != std::string::npos;
  }

  std::string mark_;
  pid_t pid_;
  bool ended_ = false;
};

std::string own_mark() {
  return fmt::format("TROUPE_TEST_MARK={}", ::getpid());
}

} // namespace

TEST_SUITE("life_record") {
  TEST_CASE("the mark of a launcher that lives is left alone") {
    const world w;
    const auto record = life_record::make(w.place.string(), own_mark());
    REQUIRE(record);
    orphan working(own_mark());
    w.bury();
    CHECK(working.lives());
    CHECK(w.records() == 1);
    record->remove();
    CHECK(w.records() == 0);
  }

  TEST_CASE("processes with the mark of a dead launcher are killed, others are not") {
    const world w;
    orphan left(own_mark()), inside(own_mark() + "/inner"), foreign(own_mark() + "0");
    REQUIRE(life_record::make(w.place.string(), own_mark()));
    CHECK(w.records() == 1);
    w.bury();
    CHECK(left.was_killed());
    CHECK(inside.was_killed());
    CHECK(foreign.lives());
    CHECK(w.records() == 0);
  }

  TEST_CASE("a forked process of the launcher keeps the record alive") {
    const world w;
    auto record = std::optional(life_record::make(w.place.string(), own_mark()));
    REQUIRE(*record);
    const pid_t pid = ::fork();
    if (pid == 0)
      for (;;)
        ::pause();
    record.reset();
    w.bury();
    CHECK(w.records() == 1);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    w.bury();
    CHECK(w.records() == 0);
  }

  TEST_CASE("a place that other users can write to, or a link to one, is not used") {
    const world w;
    orphan foreign(own_mark());
    w.make_place(0777);
    w.write("planted", own_mark() + "\n");
    w.bury();
    CHECK(w.records() == 1);
    CHECK(life_record::make(w.place.string(), {}).error().what ==
          w.place.string() + ": other users may write to it");
    REQUIRE(::chmod(w.place.c_str(), 0700) == 0);
    const auto link = w.below / "link";
    fs::create_directory_symlink(w.place, link);
    CHECK_FALSE(life_record::make(link.string(), {}));
    bury_the_dead(link.string());
    CHECK(w.records() == 1);
    CHECK(foreign.lives());
  }

  TEST_CASE("what is no record is left where it is") {
    const world w;
    orphan foreign(own_mark());
    w.make_place(0700);
    fs::create_directory(w.place / "directory");
    std::ofstream(w.below / "elsewhere") << own_mark() + "\n";
    fs::create_symlink(w.below / "elsewhere", w.place / "link");
    REQUIRE(::mkfifo((w.place / "pipe").c_str(), 0600) == 0);
    w.bury();
    CHECK(w.records() == 3);
    CHECK(foreign.lives());
  }

  TEST_CASE("a record that was cut off while it was written names no mark") {
    const world w;
    orphan of_an_outer_launcher(own_mark());
    w.make_place(0700);
    w.write("empty", "");
    w.write("cut off", own_mark());
    w.bury();
    CHECK(w.records() == 0);
    CHECK(of_an_outer_launcher.lives());
  }
}
