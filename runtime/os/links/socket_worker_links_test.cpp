#include "runtime/os/links/socket_worker_links.hpp"

#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/worker_frames.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/os/links/limits.hpp"
#include "runtime/os/links/record_files.hpp"
#include "runtime/os/process/packet.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::os;
using ports::worker_link;

namespace {

constexpr auto within = 30s;

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return address;
}

socklen_t size_of(const std::string& name) {
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

/// What an actor would hear.
class listener {
 public:
  ports::worker_link_events events() {
    ports::worker_link_events e;
    e.on_arrived = [this](const ports::worker_peer& p) { with([&] { arrived.push_back(p); }); };
    e.on_message = [this](worker_link from, const messages::any_msg& m) {
      with([&] { said.emplace_back(from, m); });
    };
    e.on_closed = [this](worker_link which) { with([&] { closed.push_back(which); }); };
    return e;
  }
  template<class Condition>
  bool comes(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, condition);
  }
  bool arrives(std::size_t n) {
    return comes([&] { return arrived.size() >= n; });
  }
  bool says(std::size_t n) {
    return comes([&] { return said.size() >= n; });
  }
  bool closes(std::size_t n) {
    return comes([&] { return closed.size() >= n; });
  }

  std::vector<ports::worker_peer> arrived;
  std::vector<std::pair<worker_link, messages::any_msg>> said;
  std::vector<worker_link> closed;
  std::vector<std::string> lines;

  void with(const std::function<void()>& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct channel {
  channel() : name(fmt::format("troupe-links-test-{}", ::getpid())) {
    listening = unique_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto address = address_of(name);
    REQUIRE(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size_of(name)) ==
            0);
    REQUIRE(::listen(listening.get(), 64) == 0);
    links = supervisor();
    links->listen(heard.events());
  }

  std::shared_ptr<socket_worker_links> supervisor(const std::string& records = {}) {
    worker_links_options o;
    o.processes = 2;
    o.records = records;
    o.log = [this](const std::string&, const log::event& e) {
      heard.with([&] { heard.lines.push_back(e.text); });
    };
    auto opened = socket_worker_links::open(io, slow, listening.get(), o);
    REQUIRE(opened);
    return *opened;
  }

  unique_fd dials() const {
    unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = address_of(name);
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size_of(name)) ==
            0);
    return socket;
  }

  std::string name;
  unique_fd listening;
  listener heard, successor;
  // After those that they call.
  io_thread io, slow{"troupe-slow"};
  std::shared_ptr<socket_worker_links> links;
};

messages::packet hello() {
  messages::worker_frames frames(1, 1);
  messages::worker_hello h;
  h.rank = 1;
  return frames.said(h);
}

bool say(const unique_fd& socket, const std::string& bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

/// Whether the other end has closed it.
bool is_left(const unique_fd& socket) {
  char byte = 0;
  pollfd one{socket.get(), POLLIN, 0};
  return ::poll(&one, 1, 30'000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

messages::any_msg request() {
  return messages::local<messages::FlightRecordRequest>("test").any();
}

} // namespace

TEST_SUITE("worker_links over a socket") {
  TEST_CASE("a process arrives under the kernel's word, and messages pass both ways") {
    channel c;
    const auto process = c.dials();
    REQUIRE(c.heard.arrives(1));
    CHECK(c.heard.arrived[0].pid == ::getpid());
    CHECK(c.heard.arrived[0].session == ::getsid(0));
    REQUIRE(say(process, hello()));
    REQUIRE(c.heard.says(1));
    CHECK(c.heard.said[0].second.is<messages::WorkerHello>());
    c.links->send(c.heard.arrived[0].link, request());
    std::vector<unsigned char> room(limits::worker_packet_max);
    const auto got = receive_packet(process.get(), true, room.data(), room.size());
    REQUIRE(got);
    REQUIRE(got->what);
    CHECK(got->what->is<messages::FlightRecordRequest>());
    c.links->close(c.heard.arrived[0].link);
    CHECK(is_left(process));
    CHECK(c.heard.closes(1));
  }

  TEST_CASE("garbage, and a packet that is too large, end the connection that they came on") {
    channel c;
    const auto good = c.dials();
    REQUIRE(c.heard.arrives(1));
    for (const std::string& bytes :
         {std::string(64, 'x'), std::string(limits::worker_packet_max + 8, '\0'),
          std::string("x")}) {
      const auto bad = c.dials();
      REQUIRE(say(bad, bytes));
      CHECK(is_left(bad));
    }
    REQUIRE(c.heard.closes(3));
    REQUIRE(say(good, hello()));
    REQUIRE(c.heard.says(1));
    REQUIRE(c.heard.lines.size() == 3);
    CHECK(c.heard.lines[1].find(fmt::format("process {} is turned away", ::getpid())) == 0);
    CHECK(c.heard.lines[1].find("more than 65536 bytes") != std::string::npos);
  }

  TEST_CASE("there are no more than so many connections, and one that ends makes room") {
    channel c;
    std::vector<unique_fd> all;
    const auto most = 2 * limits::worker_links_for_each;
    for (std::size_t i = 0; i < most; ++i)
      all.push_back(c.dials());
    REQUIRE(c.heard.arrives(most));
    CHECK(is_left(c.dials()));
    all.pop_back();
    REQUIRE(c.heard.closes(1));
    const auto next = c.dials();
    REQUIRE(c.heard.arrives(most + 1));
    CHECK(c.heard.arrived.size() == most + 1);
  }

  TEST_CASE("a process that does not read is left") {
    channel c;
    const auto deaf = c.dials();
    REQUIRE(c.heard.arrives(1));
    const auto link = c.heard.arrived[0].link;
    // What the kernel holds, and the queue.
    for (int i = 0; i < 20'000; ++i)
      c.links->send(link, request());
    REQUIRE(c.heard.closes(1));
    CHECK(c.heard.lines.back().find("does not read what it is sent") != std::string::npos);
  }

  TEST_CASE("a process that talks all the time loses nothing of it, and others are heard") {
    channel c;
    const auto loud = c.dials();
    REQUIRE(c.heard.arrives(1));
    const auto quiet = c.dials();
    const auto many = 3 * limits::worker_packets_at_once + 7;
    for (std::size_t i = 0; i < many; ++i)
      REQUIRE(say(loud, hello()));
    REQUIRE(say(quiet, hello()));
    REQUIRE(c.heard.says(many + 1));
    CHECK(c.heard.said.size() == many + 1);
  }

  TEST_CASE("a new listener has no links: processes dial again, also at a successor") {
    channel c;
    const auto process = c.dials();
    REQUIRE(c.heard.arrives(1));
    c.links->listen(c.successor.events());
    CHECK(is_left(process));
    const auto again = c.dials();
    REQUIRE(c.successor.arrives(1));
    c.links.reset();
    CHECK(is_left(again));
    // It waits until a supervisor is there again.
    const auto early = c.dials();
    REQUIRE(say(early, hello()));
    c.links = c.supervisor();
    c.links->listen(c.successor.events());
    REQUIRE(c.successor.says(1));
  }

  TEST_CASE("a process of another user is sent away before it is heard of" *
            doctest::skip(::geteuid() != 0)) {
    channel c;
    const auto child = ::fork();
    if (child == 0) {
      if (::setuid(65'534) != 0)
        ::_exit(9);
      const unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
      const auto address = address_of(c.name);
      if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size_of(c.name)) !=
          0)
        ::_exit(8);
      ::_exit(is_left(socket) ? 0 : 7);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    REQUIRE(c.heard.comes([&] { return !c.heard.lines.empty(); }));
    CHECK(
        c.heard.lines[0] ==
        fmt::format("process {} is turned away from the workers' channel: it belongs to user 65534",
                    child));
    CHECK(c.heard.arrived.empty());
  }

  TEST_CASE("records are written beside the stacks of their dump") {
    channel c;
    const auto place =
        std::filesystem::temp_directory_path() / fmt::format("troupe-records-{}", ::getpid());
    const auto keep = [&](const std::string& below) {
      std::optional<result<std::string>> answer;
      c.supervisor(below)->keep(4, {{7, "{}"}}, [&](result<std::string> directory) {
        c.heard.with([&] { answer = std::move(directory); });
      });
      REQUIRE(c.heard.comes([&] { return answer.has_value(); }));
      return *answer;
    };
    const auto written = keep(place.string());
    REQUIRE(written);
    CHECK(*written == (place / "4").string());
    std::ifstream file(place / "4" / "flight_record_7.json");
    std::string text;
    CHECK(std::getline(file, text));
    CHECK(text == "{}");
    std::filesystem::remove_all(place);
    CHECK(keep("").error().what == "there is no directory for them");
    const auto refused = keep("/proc/self");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("/proc/self/4: ") == 0);
  }

  TEST_CASE("leaves no half of a flight record where there is no room for it") {
    const auto place =
        std::filesystem::temp_directory_path() / fmt::format("troupe-no-room-{}", ::getpid());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto on_excess = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{1, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
    const auto written = os::write_records(place.string(), 4, {{7, "{}"}});
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, on_excess);
    CHECK_FALSE(written);
    CHECK(std::filesystem::is_directory(place / "4"));
    CHECK(std::filesystem::is_empty(place / "4"));
    std::filesystem::remove_all(place);
  }
}
