// The store over real sockets: what it must withstand, and what ports::store_host promises.

#include "runtime/os/net/descriptor_limit.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"
#include "runtime/tcpstore/testing/requests.hpp"
#include "tests/tcpstore/blocking_client.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <vector>

using namespace troupe;
using namespace troupe::tcpstore::testing;
using namespace troupe::testing;

namespace {

const std::string ready(1, '\0');

struct world {
  explicit world(tcpstore::bounds bounds = {}) : host(options(bounds)) {
    store = host.open({ports::store_reach::network, "127.0.0.1", 0}).value();
  }

  blocking_client joins() const {
    blocking_client c(store->port());
    c.send(hello());
    return c;
  }

  os::store_host_options options(tcpstore::bounds bounds) {
    os::store_host_options o;
    o.bounds = bounds;
    o.log = [this](const std::string&, const log::event& e) {
      const std::lock_guard lock(mutex);
      lines.push_back(e.text);
    };
    return o;
  }

  /// What has been logged so far.
  std::string said() {
    const std::lock_guard lock(mutex);
    std::string all;
    for (const auto& line : lines)
      all += line + "\n";
    return all;
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  os::asio_store_host host;
  std::unique_ptr<ports::open_store> store;
};

} // namespace

TEST_SUITE("store: over sockets") {
  TEST_CASE("clients hear what others set, over IPv4 and IPv6") {
    world w;
    auto a = w.joins();
    a.send(set("k", "v") + get("k"));
    CHECK(a.read(9) == text("v"));
    if (!blocking_client::can_connect(w.store->port(), "::1"))
      return; // a machine without IPv6
    blocking_client b(w.store->port(), "::1");
    b.send(hello() + get("k"));
    CHECK(b.read(9) == text("v"));
  }

  TEST_CASE("half requests delay no other client, however they are cut") {
    world w;
    auto slow = w.joins(), other = w.joins();
    const auto request = set("key", "value") + get("key");
    for (const char c : request) {
      slow.send(std::string(1, c));
      other.send(ping(1));
      CHECK(other.read(4) == u32(1));
    }
    CHECK(slow.read(13) == text("value"));
  }

  TEST_CASE("garbage and impossible lengths end this connection, with one line, and no other") {
    const std::vector<std::string> all = {
        "GET / HTTP/1.1\r\n\r\n",
        std::string(100'000, '\xff'),
        hello() + op(tcpstore::operation::set) + i64(-1) + "x",
        hello() + set("k", "") + op(tcpstore::operation::multi_set) + i64(1ll << 60),
        hello() + hello(),
        old_op(7) + text("k"),
    };
    world w;
    auto steady = w.joins();
    for (const auto& bytes : all) {
      blocking_client c(w.store->port());
      c.send(bytes);
      CHECK(c.read_to_end().empty());
      steady.send(ping(5));
      CHECK(steady.read(4) == u32(5));
    }
    const auto said = w.said();
    CHECK(std::count(said.begin(), said.end(), '\n') == static_cast<long>(all.size()));
    CHECK(said.find("the store closed the connection from 127.0.0.1:") == 0);
    CHECK(said.find("there is no operation 0") != std::string::npos);
  }

  TEST_CASE("a thousand idle connections delay no other client") {
    REQUIRE(os::raise_descriptor_limit(4'096).value() >= 2'100);
    world w;
    std::vector<blocking_client> idle;
    for (int i = 0; i < 1'000; ++i)
      idle.push_back(w.joins());
    auto a = w.joins();
    a.send(add("n", 1));
    CHECK(a.read(8) == i64(1));
    for (auto& each : idle)
      each.send(wait({"go"}));
    a.send(set("go", ""));
    for (auto& each : idle)
      CHECK(each.read(1) == ready);
  }

  TEST_CASE("a client that leaves while it waits is forgotten, and the others are woken") {
    world w;
    auto b = w.joins();
    {
      auto a = w.joins();
      a.send(wait({"k"}) + ping(1));
      b.send(wait({"k"}));
    }
    auto c = w.joins();
    c.send(set("k", "v") + get("k"));
    CHECK(c.read(9) == text("v"));
    CHECK(b.read(1) == ready);
  }

  TEST_CASE("a slow reader gets everything in the end, and until then costs little") {
    tcpstore::bounds b;
    b.traffic_max = 32u << 20;
    world w(b);
    auto slow = w.joins(), other = w.joins();
    const std::string large(1u << 20, 'x');
    slow.send(set("large", large));
    // 200 MiB of answers, which is more than the store may hold.
    std::string burst;
    for (int i = 0; i < 200; ++i)
      burst += get("large");
    slow.send(burst);
    for (std::uint32_t i = 0; i < 100; ++i) {
      other.send(ping(i));
      CHECK(other.read(4) == u32(i));
    }
    for (int i = 0; i < 200; ++i)
      REQUIRE(slow.read(8 + large.size()) == text(large));
    CHECK(w.said().empty());
  }

  TEST_CASE("a client that is one too many is refused, with a line") {
    tcpstore::bounds b;
    b.clients_max = 1;
    world w(b);
    auto a = w.joins();
    a.send(ping(1));
    CHECK(a.read(4) == u32(1));
    CHECK(blocking_client(w.store->port()).read_to_end().empty());
    CHECK(w.said().find("it has 1 clients already") != std::string::npos);
  }
}

TEST_SUITE("store: its host") {
  TEST_CASE("closing a store ends all its connections and frees its port; others stay") {
    world w;
    const auto second = w.host.open({ports::store_reach::network, "127.0.0.1", 0}).value();
    auto a = w.joins();
    a.send(wait({"k"}));
    blocking_client b(second->port());
    b.send(hello() + set("k", "v") + get("k"));
    CHECK(b.read(9) == text("v"));
    const auto port = w.store->port();
    w.store.reset();
    CHECK(a.read_to_end().empty());
    b.send(get("k"));
    CHECK(b.read(9) == text("v"));
    w.store = w.host.open({ports::store_reach::network, "127.0.0.1", port}).value();
    auto c = w.joins();
    c.send(check({"k"}));
    CHECK(c.read(1) != ready); // nothing is left of the first one
  }

  TEST_CASE("a busy port, and an address that is not ours, are refused with a line") {
    world w;
    const auto busy = w.host.open({ports::store_reach::network, "n1", w.store->port()});
    REQUIRE_FALSE(busy);
    CHECK(busy.error().what == "cannot listen on n1:" + std::to_string(w.store->port()) +
                                   ": the port is in use by another program");
    const auto foreign = w.host.open({ports::store_reach::this_machine, "192.0.2.1", 0});
    REQUIRE_FALSE(foreign);
    CHECK(foreign.error().what == "cannot listen on 192.0.2.1:0: Cannot assign requested address");
  }

  TEST_CASE("for this machine only: loopback is all it listens on, by either name") {
    os::asio_store_host host;
    for (const char* address : {"127.0.0.1", "localhost"}) {
      const auto store = host.open({ports::store_reach::this_machine, address, 0}).value();
      blocking_client a(store->port());
      a.send(hello() + ping(3));
      CHECK(a.read(4) == u32(3));
      // Another of this machine's addresses: no server is there.
      CHECK_FALSE(blocking_client::can_connect(store->port(), "127.0.0.2"));
    }
    // A name may mean different addresses to different clients: the server looks at each peer.
    const auto named = host.open({ports::store_reach::this_machine, "node-1.lan", 0}).value();
    blocking_client b(named->port());
    b.send(hello() + ping(4));
    CHECK(b.read(4) == u32(4));
  }
}
