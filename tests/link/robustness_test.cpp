// What may come over a plain connection, and what may happen to the process at its other end.

#include "runtime/base/limits.hpp"
#include "runtime/base/random.hpp"
#include "runtime/os/net/descriptor_limit.hpp"
#include "tests/link/asio_world.hpp"
#include "tests/link/child.hpp"
#include "tests/link/raw_peer.hpp"

#include <atomic>
#include <csignal>
#include <memory>
#include <vector>

namespace {

using namespace troupe;
using namespace troupe::testing;

os::transport_options impatient() {
  auto o = calm_options();
  o.link.handshake_within = 200ms;
  o.link.linger_max = 100ms;
  return o;
}

/// A listener that may be mistreated, and a link through it that must not suffer.
struct victim {
  asio_world world;
  accepted_links accepted;
  std::unique_ptr<ports::listener> listener;
  std::optional<owner> node;
  std::optional<owner> master;

  explicit victim(os::transport_options options = impatient()) : world(std::move(options)) {
    listener = std::move(*world.transport().listen(world.place(), accepted.acceptor()));
    node.emplace(std::move(*dial(world, listener->where())));
    REQUIRE(eventually([this] { return accepted.names().size() == 1; }));
    master.emplace(accepted.link(0));
    node->open();
    master->open();
  }

  std::uint16_t port() const { return listener->where().port; }

  /// The link works and no other peer was let in.
  void unharmed() {
    const auto before = master->numbers().size();
    REQUIRE(node->link().send(numbered(before + 1)));
    CHECK(eventually([this, before] { return master->numbers().size() == before + 1; }));
    CHECK(master->reasons().empty());
    CHECK(accepted.names().size() == 1);
  }
};

std::vector<kj::byte> header(std::uint32_t words) {
  const auto raw = link::encode({words, 1});
  return {raw.begin(), raw.end()};
}

/// A link to a child process, as an owner.
owner dial_child(asio_world& world, child& other) {
  auto answer = dial(world, {"127.0.0.1", static_cast<std::uint16_t>(std::stoi(other.line()))});
  REQUIRE_MESSAGE(answer.has_value(), answer.error().what);
  owner node(std::move(*answer));
  node.open();
  return node;
}

void check_echo(owner& node) {
  const auto before = node.numbers().size();
  REQUIRE(node.link().send(numbered(before + 1)));
  CHECK(eventually([&node, before] { return node.numbers().size() == before + 1; }));
}

} // namespace

TEST_CASE("garbage ends its own connection and nothing else") {
  victim v;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    random_source random(seed);
    std::vector<kj::byte> garbage(1 + random.below(100'000));
    for (auto& b : garbage)
      b = static_cast<kj::byte>(random.next());
    // Every other time it begins well.
    if (seed % 2 == 0) {
      const auto good = header(static_cast<std::uint32_t>(random.below(4'000)));
      garbage.insert(garbage.begin(), good.begin(), good.end());
    }
    raw_peer peer(v.port());
    peer.send(garbage);
    ::shutdown(peer.descriptor(), SHUT_WR);
    CHECK(peer.read_to_end().empty());
  }
  v.unharmed();
}

TEST_CASE(
    "a header that promises too much, or keeps nothing of it, costs no memory and ends in time") {
  victim v;
  for (const std::uint32_t words : {0xffffffffu, 0x10000000u, 32'769u}) {
    raw_peer peer(v.port());
    peer.send(header(words));
    CHECK(peer.read_to_end().empty());
  }
  std::vector<raw_peer> slow;
  for (int i = 0; i < 100; ++i)
    slow.emplace_back(v.port()).send(header(32'768));
  for (auto& peer : slow)
    CHECK(peer.read_to_end().empty());
  v.unharmed();
}

TEST_CASE(
    "half a frame, half a header or nothing at all is waited for no longer than a handshake") {
  victim v;
  const auto whole = on_wire(1, hello("node-9").any());
  for (const std::size_t part :
       {std::size_t{0}, std::size_t{7}, std::size_t{16}, whole.size() - 1}) {
    raw_peer peer(v.port());
    peer.send({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(part)});
    CHECK(peer.read_to_end().empty());
  }
  v.unharmed();
}

TEST_CASE("a Hello byte by byte is as good as at once") {
  auto options = impatient();
  options.link.handshake_within = 1h;
  victim v(options);
  raw_peer peer(v.port());
  for (const auto b : on_wire(1, hello("node-9").any()))
    REQUIRE(peer.send({b}));
  CHECK(eventually([&v] { return v.accepted.names().size() == 2; }));
  CHECK(peer.read(link::header_size) == beat_on_wire(0));
}

TEST_CASE("strangers are bounded: the oldest goes first") {
  auto options = impatient();
  options.link.handshake_within = 1h;
  options.unproven_max = 4;
  options.unproven_grace = 0s;
  victim v(options);
  std::vector<raw_peer> strangers;
  for (int i = 0; i < 5; ++i) {
    strangers.emplace_back(v.port());
    // Each is known to have been accepted before the next comes.
    v.unharmed();
  }
  CHECK(strangers[0].read_to_end().empty());
  for (int i = 1; i < 5; ++i) {
    char none = 0;
    CHECK(::recv(strangers[static_cast<std::size_t>(i)].descriptor(), &none, 1, MSG_DONTWAIT) ==
          -1);
  }
}

TEST_CASE("silent connections without end keep no node from joining, and few of them are logged") {
  auto options = impatient();
  options.link.handshake_within = 1h;
  // A connection must be silent for a quarter of this before it is dropped for another.
  options.unproven_grace = 40ms;
  options.unproven_max = 16;
  const auto lines = std::make_shared<std::atomic<std::uint64_t>>(0);
  options.log = [lines](const std::string&, const log::event& e) {
    *lines += e.name == "connection_refused";
  };
  victim v(options);
  std::vector<raw_peer> strangers;
  for (int i = 0; i < 500; ++i)
    strangers.emplace_back(v.port());
  const auto joined = dial(v.world, v.listener->where(), "late");
  CHECK_MESSAGE(joined.has_value(), joined.error().what);
  CHECK(eventually([&v] { return v.accepted.names().size() == 2; }));
  CHECK(*lines == limits::refusals_told);
}

TEST_CASE("a thousand idle connections do not disturb a link") {
  REQUIRE(os::raise_descriptor_limit(4'096).value_or(0) >= 4'096);
  auto options = impatient();
  options.link.handshake_within = 1h;
  options.unproven_max = 2'000;
  victim v(options);
  std::vector<raw_peer> strangers;
  for (int i = 0; i < 1'000; ++i)
    strangers.emplace_back(v.port());
  for (int i = 0; i < 100; ++i)
    v.unharmed();
}

TEST_CASE(
    "a peer that proves itself and never reads again loses the link, and memory stays bounded") {
  auto options = impatient();
  options.link.lease = options.link.handshake_within = 1h;
  options.link.send_queue_max = 16u << 20;
  victim v(options);
  raw_peer peer(v.port());
  REQUIRE(peer.send(on_wire(1, hello("node-9").any())));
  REQUIRE(eventually([&v] { return v.accepted.names().size() == 2; }));
  owner slow(v.accepted.link(1));
  slow.open();
  const auto m = large(1, 1u << 20);
  std::size_t accepted = 0;
  result<void> sent;
  // The kernel takes some megabytes before the queue begins to grow.
  while ((sent = slow.link().send(m)) && accepted < 100)
    ++accepted;
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == errc::overloaded);
  CHECK(eventually([&slow] { return slow.closed(); }));
  CHECK(slow.reasons().at(0).find("fallen behind") != std::string::npos);
}

TEST_CASE("without file descriptors a listener pauses, and goes on when there are some again") {
  child other({"listen", "--files", "24"});
  const auto port = static_cast<std::uint16_t>(std::stoi(other.line()));
  asio_world world;
  {
    std::vector<raw_peer> many;
    for (int i = 0; i < 40; ++i)
      many.emplace_back(port);
    CHECK(other.line() == "accept_paused");
    // The last ones wait in the kernel: they are connected and their Hello is not answered.
    REQUIRE(many.back().send(on_wire(1, hello("node-9").any())));
    char none = 0;
    CHECK(::recv(many.back().descriptor(), &none, 1, MSG_DONTWAIT) == -1);
  }
  auto answer = dial(world, {"127.0.0.1", port});
  REQUIRE_MESSAGE(answer.has_value(), answer.error().what);
  owner node(std::move(*answer));
  node.open();
  check_echo(node);
}

TEST_CASE("a killed peer is noticed, whichever end dialled") {
  asio_world world;
  SUBCASE("the acceptor was killed") {
    child other({"listen"});
    auto node = dial_child(world, other);
    check_echo(node);
    other.signal(SIGKILL);
    CHECK(eventually([&node] { return node.closed(); }));
  }
  SUBCASE("the dialler was killed") {
    accepted_links accepted;
    auto listener = world.transport().listen(world.place(), accepted.acceptor());
    child other({"dial", std::to_string((*listener)->where().port)});
    REQUIRE(other.line() == "connected");
    owner master(accepted.link(0));
    master.open();
    check_echo(master);
    other.signal(SIGKILL);
    CHECK(eventually([&master] { return master.closed(); }));
  }
}

TEST_CASE("a peer that freezes for a moment stays") {
  asio_world world;
  child other({"listen"});
  auto node = dial_child(world, other);
  other.stop();
  REQUIRE(node.link().send(numbered(1)));
  other.signal(SIGCONT);
  CHECK(eventually([&node] { return node.numbers().size() == 1; }));
  CHECK_FALSE(node.closed());
}

TEST_CASE("a peer that freezes for good is silent, and that ends the link") {
  asio_world world(os::transport_options{});
  child other({"listen"});
  auto node = dial_child(world, other);
  other.stop();
  CHECK(eventually([&node] { return node.closed(); }));
  CHECK(node.reasons().at(0).find("nothing heard for") != std::string::npos);
}

TEST_CASE("an end that was frozen itself for longer than the limit keeps a peer that has waited") {
  os::transport_options patient;
  patient.link.lease = 1h;
  patient.link.beat_every = 50ms;
  asio_world world(patient);
  accepted_links accepted;
  auto listener = world.transport().listen(world.place(), accepted.acceptor());
  child other({"dial", std::to_string((*listener)->where().port), "--silent", "1000"});
  REQUIRE(other.line() == "connected");
  owner master(accepted.link(0));
  master.open();
  check_echo(master);
  other.stop();
  std::this_thread::sleep_for(1600ms); // this is the freeze, not a wait for something
  other.signal(SIGCONT);
  for (int i = 0; i < 5; ++i)
    check_echo(master);
  CHECK_FALSE(master.closed());
}
