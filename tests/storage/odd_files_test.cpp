// What lies among checkpoints and is no file that can be read to its end, and file systems that do
// not say how large they are.
#include "ckpt/catalog/foreign_steps.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/storage/posix_storage.hpp"
#include "tests/storage/storage_contract.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::ckpt;
using ports::never_stops;
using testing::sample;
using testing::temporary_directory;

namespace {

/// Makes a file that is no regular one; false if this user may not.
using maker = std::function<bool(const std::string&)>;

bool make_fifo(const std::string& path) {
  return ::mkfifo(path.c_str(), 0666) == 0;
}
bool make_socket(const std::string& path) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const bool made =
      ::bind(listener, reinterpret_cast<const ::sockaddr*>(&address), sizeof(address)) == 0;
  ::close(listener);
  return made;
}
bool make_endless_device(const std::string& path) {
  return ::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0; // as /dev/zero
}
bool make_link_to_fifo(const std::string& path) {
  const auto fifo = path + "-fifo";
  return make_fifo(fifo) && ::symlink(fifo.c_str(), path.c_str()) == 0;
}

struct odd_file {
  const char* kind;
  maker make;
};
const odd_file odd_files[] = {{"a FIFO", make_fifo},
                              {"a socket", make_socket},
                              {"a device", make_endless_device},
                              {"a link to a FIFO", make_link_to_fifo}};

/// Fails, and lets the call go, if it does not end by itself.
template<class Call>
auto ends(const std::string& fifo, Call call) {
  auto answer = std::async(std::launch::async, std::move(call));
  if (answer.wait_for(10s) != std::future_status::ready) {
    FAIL_CHECK("it waits for '", fifo, "'");
    while (answer.wait_for(1ms) != std::future_status::ready)
      ::close(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  }
  return answer.get();
}

/// Two steps of one rank at a place.
struct two_steps {
  two_steps() {
    auto catalog = opened();
    for (const std::uint64_t step : {10, 20}) {
      manifest m;
      m.step = step;
      m.made_by = generation{1};
      m.save = step;
      const auto directory = std::to_string(step);
      REQUIRE(catalog.begin(step, directory, m.id()));
      const auto put = storage.put(directory + "/rank_0.pt", ports::bytes_of("state"), never_stops);
      REQUIRE(put);
      m.shards = {{"rank_0.pt", *put, "n0"}};
      REQUIRE(catalog.commit(m, framework::ddp));
    }
  }
  step_catalog opened() {
    auto found = step_catalog::open(storage);
    REQUIRE_MESSAGE(found, found.error().what);
    return std::move(*found);
  }
  std::string path(const std::string& name) const { return at.path.string() + "/" + name; }

  temporary_directory at;
  os::posix_storage storage{at.path.string()};
};

std::string not_regular(const std::string& path) {
  return "'" + path + "' cannot be read: it is no regular file (a FIFO, a socket or a device)";
}

} // namespace

TEST_CASE("what is no regular file is not waited for, and named with what to do") {
  for (const auto& odd : odd_files) {
    CAPTURE(std::string(odd.kind));
    const temporary_directory at;
    os::posix_storage storage(at.path.string());
    const auto path = (at.path / "odd").string();
    if (!odd.make(path))
      continue; // a device, by a user who may not make one
    const auto small = ends(path, [&] { return storage.get_small("odd", 100); });
    REQUIRE_FALSE(small);
    CHECK(small.error().code == errc::refused);
    CHECK(small.error().what == not_regular(path));
    std::array<std::byte, 100> into{};
    const auto got = ends(path, [&] {
      return storage.get("odd", {into.data(), into.size()}, never_stops);
    });
    REQUIRE_FALSE(got);
    CHECK(got.error().what == not_regular(path));
    // It is replaced like any file, and removed.
    REQUIRE(storage.replace("odd", "regular"));
    CHECK(storage.get_small("odd", 100).value() == "regular");
    REQUIRE(storage.remove("odd"));
  }
}

TEST_CASE("a directory in the place of a file is named") {
  const temporary_directory at;
  os::posix_storage storage(at.path.string());
  std::filesystem::create_directory(at.path / "odd");
  const auto read = storage.get_small("odd", 100);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::refused);
  CHECK(read.error().what.find("a directory has this name") != std::string::npos);
}

TEST_CASE("what lies behind a link to a directory is read, and neither removed nor written") {
  const temporary_directory at, elsewhere;
  os::posix_storage storage(at.path.string());
  std::ofstream(elsewhere.path / "manifest") << "of another run";
  std::filesystem::create_directory_symlink(elsewhere.path, at.path / "5");
  const auto is_whole = [&] { return storage.get_small("5/manifest", 100) == "of another run"; };
  REQUIRE(is_whole());
  CHECK(storage.remove("5/manifest"));
  CHECK(is_whole());
  const auto written = storage.replace("5/manifest", "of this one");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::refused);
  CHECK(written.error().what.find("/5' is a link to another directory") != std::string::npos);
  CHECK(is_whole());
  // The link is of this place.
  CHECK(storage.remove("5"));
  CHECK_FALSE(std::filesystem::exists(at.path / "5"));
  CHECK(std::filesystem::exists(elsewhere.path / "manifest"));
  CHECK(storage.replace("5/manifest", "of this one"));
}

TEST_CASE("Troupe's own names may be links to another disk") {
  const temporary_directory at, elsewhere;
  os::posix_storage storage(at.path.string());
  std::filesystem::create_directory_symlink(elsewhere.path, at.path / ".troupe");
  REQUIRE(storage.replace(".troupe/steps/5", "marker"));
  CHECK(std::filesystem::exists(elsewhere.path / "steps/5"));
  CHECK(storage.remove(".troupe/steps/5"));
  CHECK_FALSE(std::filesystem::exists(elsewhere.path / "steps/5"));
}

TEST_CASE("a regular file behind a link is read, and one that another process holds a lease on") {
  const temporary_directory at;
  os::posix_storage storage(at.path.string());
  std::ofstream(at.path / "file") << "content";
  std::filesystem::create_symlink("file", at.path / "link");
  CHECK(storage.get_small("link", 100).value() == "content");
  // As a file server does for its clients: an open waits until the lease is given back.
  const int holder = ::open((at.path / "file").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(holder >= 0);
  ::signal(SIGIO, SIG_IGN);
  const bool leased = ::fcntl(holder, F_SETLEASE, F_WRLCK) == 0;
  auto read = std::async(std::launch::async, [&] { return storage.get_small("file", 100); });
  if (leased) {
    while (::fcntl(holder, F_GETLEASE) == F_WRLCK &&
           read.wait_for(1ms) != std::future_status::ready)
      continue;
    ::fcntl(holder, F_SETLEASE, F_UNLCK);
  }
  const auto content = read.get();
  REQUIRE_MESSAGE(content, content.error().what);
  CHECK(*content == "content");
  ::close(holder);
}

TEST_CASE("an odd file in the place of a step's manifest, marker or shard costs that step alone") {
  two_steps j;
  struct row {
    const char* name;
    const char* why; ///< nothing: the step is there all the same, by its manifest
  };
  const row rows[] = {{"20/troupe-manifest.json", "no regular file"},
                      {".troupe/steps/20", nullptr},
                      {"20/rank_0.pt", "'20/rank_0.pt' is missing"}};
  for (const auto& odd : odd_files)
    for (const auto& r : rows) {
      CAPTURE(std::string(odd.kind));
      CAPTURE(std::string(r.name));
      const auto path = j.path(r.name);
      std::filesystem::rename(path, j.path("aside"));
      if (odd.make(path)) {
        const auto found = ends(path, [&] { return j.opened(); });
        REQUIRE(found.newest() != nullptr);
        CHECK(found.newest()->step == (r.why == nullptr ? 20 : 10));
        if (r.why != nullptr)
          CHECK(found.steps().at(20).why.find(r.why) != std::string::npos);
      }
      std::filesystem::remove(path + "-fifo");
      std::filesystem::rename(j.path("aside"), path);
      CHECK(j.opened().newest()->step == 20);
    }
}

TEST_CASE("a marker that is a FIFO is refused when its step is begun, and stays") {
  two_steps j;
  const auto path = j.path(".troupe/steps/30");
  REQUIRE(make_fifo(path));
  auto catalog = j.opened();
  const auto begun = ends(path, [&] { return catalog.begin(30, "30", {generation{1}, 30}); });
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == errc::refused);
  CHECK(begun.error().what.find(not_regular(path)) != std::string::npos);
  CHECK(std::filesystem::is_fifo(path));
}

TEST_CASE("a tracker that is a FIFO names no step, and is replaced by one that does") {
  two_steps j;
  const auto path = j.path("dlrover_latest.txt");
  std::filesystem::remove(path);
  REQUIRE(make_fifo(path));
  CHECK(ends(path, [&] { return foreign_steps(j.storage); }).value().empty());
  auto catalog = j.opened();
  REQUIRE(ends(path, [&] { return catalog.point(framework::ddp); }));
  CHECK(j.storage.get_small("dlrover_latest.txt", 100).value() == "20");
}

TEST_CASE("a FIFO with the name of an unfinished file holds no save up") {
  two_steps j;
  const auto path = j.path("10/.troupe-part-0000000000000001");
  REQUIRE(make_fifo(path));
  os::posix_storage other(j.at.path.string());
  CHECK(ends(path, [&] { return other.replace("10/file", "content"); }));
}

TEST_CASE("a file system that does not say how large it is takes checkpoints") {
  const temporary_directory at;
  struct row {
    const char* type;
    const char* options;
  };
  for (const row& r : {row{"ramfs", ""}, row{"tmpfs", "size=0"}}) {
    CAPTURE(std::string(r.type));
    const auto wrong = std::async(std::launch::async, [&]() -> std::optional<std::string> {
                         // A mount namespace of this thread alone, which ends with it.
                         if (::unshare(CLONE_NEWNS) != 0 ||
                             ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                             ::mount("none", at.path.c_str(), r.type, 0, r.options) != 0)
                           return std::nullopt;
                         os::posix_storage storage(at.path.string() + "/ckpt");
                         for (const std::size_t size : {1'000, 3'000'000}) {
                           const sample bytes(size, 1);
                           const auto put = storage.put("10/rank_0.pt", bytes.view(), never_stops);
                           if (!put)
                             return put.error().what;
                           if (testing::content_of(storage, "10/rank_0.pt") != bytes.text())
                             return "it reads as something else";
                         }
                         return "";
                       }).get();
    if (wrong)
      CHECK(*wrong == "");
    else
      MESSAGE("not tried: this user may mount no ", std::string(r.type));
  }
}
