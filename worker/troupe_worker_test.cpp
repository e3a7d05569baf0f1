#include "worker/troupe_worker.h"

#include "diag/progress/page_view.hpp"
#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/msg.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace troupe;
using namespace troupe::messages;

extern "C" int troupe_c_program(void);

namespace {

/// As the launcher makes it.
class page_of_launcher {
 public:
  page_of_launcher() : file_(::memfd_create("troupe-progress", 0)) {
    REQUIRE(::ftruncate(file_.get(), diag::page_bytes) == 0);
    memory_ = ::mmap(nullptr, diag::page_bytes, PROT_READ, MAP_SHARED, file_.get(), 0);
    REQUIRE(memory_ != MAP_FAILED);
    ::setenv("TROUPE_PROGRESS_FD", std::to_string(file_.get()).c_str(), 1);
  }
  ~page_of_launcher() { ::munmap(memory_, diag::page_bytes); }

  std::optional<diag::page_view> seen() const {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return diag::read_page(*static_cast<const diag::progress_page*>(memory_),
                           static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                               static_cast<std::uint64_t>(now.tv_nsec));
  }

 private:
  os::unique_fd file_;
  void* memory_ = nullptr;
};

/// What a forked child answers.
int in_child(const std::function<int()>& what) {
  const auto child = ::fork();
  if (child == 0)
    ::_exit(what());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int sockets_open() {
  int count = 0;
  auto* const folder = ::opendir("/proc/self/fd");
  while (const auto* each = ::readdir(folder)) {
    struct stat seen {};
    if (each->d_name[0] != '.' && ::fstat(std::atoi(each->d_name), &seen) == 0 &&
        S_ISSOCK(seen.st_mode))
      ++count;
  }
  ::closedir(folder);
  return count;
}

/// The node supervisor's end.
class supervisor {
 public:
  supervisor() : listens_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const auto name = fmt::format("@troupe-worker-test-{}", ::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    REQUIRE(::bind(listens_.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
    REQUIRE(::listen(listens_.get(), 4) == 0);
    ::setenv("TROUPE_CHANNEL", name.c_str(), 1);
  }

  void accepts() {
    pollfd one{listens_.get(), POLLIN, 0};
    REQUIRE(::poll(&one, 1, 30'000) == 1);
    talks_ = os::unique_fd(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  void hangs_up() { talks_ = os::unique_fd(); }

  any_msg hears() {
    pollfd one{talks_.get(), POLLIN, 0};
    REQUIRE(::poll(&one, 1, 30'000) == 1);
    std::string bytes(limits::worker_packet_max, '\0');
    const auto size = ::recv(talks_.get(), bytes.data(), bytes.size(), 0);
    REQUIRE(size > 0);
    const auto said = admit(bytes.data(), static_cast<std::size_t>(size));
    REQUIRE(said);
    return *said;
  }
  void says(const void* bytes, std::size_t size) {
    REQUIRE(::send(talks_.get(), bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
  }

 private:
  os::unique_fd listens_, talks_;
};

} // namespace

// One process has one page, so this is one story.
TEST_CASE("a program that knows the C ABI alone is seen, and its children are not") {
  ::unsetenv("TROUPE_PROGRESS_FD");
  CHECK(in_child([] { return troupe_take_page() * 2 + (troupe_c_program() == 0 ? 1 : 0); }) == 1);

  ::setenv("TROUPE_PROGRESS_FD", "0", 1); // has come to mean another file
  CHECK(in_child([] { return troupe_take_page(); }) == 0);

  page_of_launcher page;
  CHECK_FALSE(page.seen());
  REQUIRE(troupe_take_page() == 1);
  CHECK(troupe_c_program() == 0);
  auto seen = page.seen();
  REQUIRE(seen);
  CHECK(seen->pid == static_cast<std::uint64_t>(::getpid()));
  CHECK(seen->step == 42);
  CHECK(seen->steps_made == 2);
  CHECK(seen->fed_by(diag::feed::steps_by_script));
  REQUIRE(seen->communicators.size() == 1);
  CHECK(seen->communicators[0].left == 1);

  CHECK(in_child([] {
          troupe_c_program();
          return troupe_take_page();
        }) == 0);
  CHECK(page.seen()->steps_made == 2);

  // What another process does that has inherited the descriptor.
  CHECK(in_child([] {
          struct flock whole {};
          whole.l_type = F_WRLCK;
          return ::fcntl(std::atoi(std::getenv("TROUPE_PROGRESS_FD")), F_SETLK, &whole) == 0 ? 1
                                                                                             : 0;
        }) == 0);
}

TEST_CASE("the channel says hello to each supervisor, tells the first step, and answers") {
  supervisor node;
  ::setenv("RANK", "3", 1);
  ::setenv("TROUPE_GENERATION", "7", 1);
  page_of_launcher page;
  REQUIRE(troupe_take_page() == 1);
  CHECK(in_child([] { return troupe_begin_channel("3.11", nullptr); }) == 0);
  REQUIRE(troupe_begin_channel("3.11", nullptr) == 1);
  CHECK(troupe_begin_channel("3.11", nullptr) == 0);
  node.accepts();
  const auto hello = node.hears();
  REQUIRE(hello.is<WorkerHello>());
  CHECK(hello.as<WorkerHello>().read()->getRank() == 3);
  CHECK(hello.as<WorkerHello>().read()->getPython() == "3.11");
  CHECK(hello.envelope().about == generation{7});
  const auto before = hello.as<WorkerHello>().read()->getFirstStepNs();

  const auto open_here = sockets_open();
  CHECK(in_child([] { return sockets_open(); }) == open_here - 1);

  if (before == 0) {
    troupe_next_step();
    CHECK(node.hears().is<FirstStep>());
  }
  node.says("no message", 10);
  const auto request =
      build<FlightRecordRequest>(stamp{"node", {}, generation{7}, 1, 44}, [](auto) {});
  node.says(request.any().words().asBytes().begin(), request.any().size_bytes());
  const auto record = node.hears();
  REQUIRE(record.is<FlightRecord>());
  CHECK(record.envelope().correlation == 44);
  CHECK(record.as<FlightRecord>().read()->getWhy() == "this process has not loaded PyTorch");

  node.hangs_up();
  node.accepts();
  const auto again = node.hears();
  REQUIRE(again.is<WorkerHello>());
  CHECK(again.as<WorkerHello>().read()->getFirstStepNs() != 0);
}
