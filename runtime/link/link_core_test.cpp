#include "runtime/link/link_core.hpp"

#include "runtime/base/invariant.hpp"
#include "tests/link/open_ends.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::link;
using namespace troupe::testing;

TEST_CASE("a Hello proves the dialler and the beat in return proves the acceptor") {
  auto node = dialler();
  auto master = acceptor();
  CHECK_FALSE(node.proven);
  master.receive(start, node.take_output());
  CHECK(master.proven);
  REQUIRE(master.hello);
  CHECK(master.hello.read()->getNode() == "node-0");
  CHECK(master.core().now_in() == phase::open);

  node.receive(start, master.take_output());
  CHECK(node.proven);
  CHECK_FALSE(node.hello);
  CHECK(node.core().now_in() == phase::open);
  CHECK(node.delivered.empty());
}

TEST_CASE("the acceptor believes nothing but a Hello") {
  struct row {
    const char* name;
    std::vector<kj::byte> raw;
    const char* words;
  };
  const std::vector<kj::byte> http{'G', 'E', 'T', ' ', '/', ' ', 'H',  'T',
                                   'T', 'P', '/', '1', '.', '1', '\r', '\n'};
  for (const auto& r : {
           row{"another message", on_wire(1, numbered(1)),
               "the first frame is Goodbye instead of a Hello"},
           row{"a beat", beat_on_wire(0), "the first frame is a beat instead of a Hello"},
           row{"a late Hello", on_wire(2, hello().any()), "message 1 never came"},
           row{"a Hello before the first", on_wire(0, hello().any()),
               "not the peer's first message"},
           row{"another protocol", http, "does not speak this protocol"},
           row{"a frame too large for a stranger",
               on_wire(1, large(1, limits::handshake_frame_max)), "at most 262144"},
       }) {
    CAPTURE(r.name);
    auto master = acceptor();
    master.receive(start, r.raw);
    CHECK_FALSE(master.proven);
    CHECK(master.core().now_in() == phase::closing);
    CHECK(master.half_closed);
    master.core().ended(start, {errc::closed, "the peer closed the link"});
    master.act(start);
    REQUIRE(master.closed.size() == 1);
    CHECK(master.closed[0].code == errc::invalid);
    CHECK_MESSAGE(mentions(master.closed[0], r.words), master.closed[0].what);
  }
}

TEST_CASE("a node whose certificate has another name is refused, and hears why") {
  core_end master(link_core::accepting(defaults, start), start, {{"node-7", "10.0.0.7"}});
  auto node = dialler();
  master.receive(start, node.take_output());
  CHECK_FALSE(master.proven);
  CHECK(master.core().now_in() == phase::closing);

  node.receive(start, master.take_output());
  REQUIRE(node.closed.size() == 1);
  CHECK(node.closed[0].code == errc::refused);
  CHECK(node.closed[0].what ==
        "the certificate is for node-7, 10.0.0.7, not for a node named \"node-0\"");
}

TEST_CASE("a node whose certificate has its name is let in") {
  core_end master(link_core::accepting(defaults, start), start, {{"node-7", "node-0"}});
  master.receive(start, on_wire(1, hello().any()));
  CHECK(master.proven);
}

TEST_CASE("the dialler takes nothing but a beat or a refusal for an answer") {
  auto node = dialler();
  node.receive(start, on_wire(1, numbered(1)));
  CHECK_FALSE(node.proven);
  REQUIRE(node.closed.size() == 1);
  CHECK(node.closed[0].code == errc::invalid);
}

TEST_CASE("a peer that says nothing is let go: an acceptor's and a dialler's alike") {
  auto master = acceptor();
  CHECK(master.wake_at == start + defaults.handshake_within);
  master.tick(start + defaults.handshake_within - 1ms);
  CHECK(master.core().now_in() == phase::handshake);
  master.tick(start + defaults.handshake_within);
  CHECK(master.core().now_in() == phase::closing);
  CHECK(master.wake_at == start + defaults.handshake_within + defaults.linger_max);
  master.tick(master.wake_at);
  REQUIRE(master.closed.size() == 1);
  CHECK(mentions(master.closed[0], "no Hello within 5.0 s"));

  // The dialler's owner waits for an answer, so there is no lingering.
  auto node = dialler();
  node.tick(start + defaults.dial_within);
  REQUIRE(node.closed.size() == 1);
  CHECK(node.closed[0].code == errc::unavailable);
}

TEST_CASE("nothing is asked of a network that is not there yet") {
  auto core = link_core::dialling(defaults, start, start + 5s, hello());
  auto todo = core.react(start);
  CHECK_FALSE(todo.read);
  CHECK(todo.write.empty());
  CHECK(todo.wake_at == start + 5s);

  SUBCASE("then it is") {
    core.ready(start + 1s);
    todo = core.react(start + 1s);
    CHECK(todo.read);
    CHECK(todo.write.size() == 1);
  }
  SUBCASE("it never is") {
    core.tick(start + 5s);
    todo = core.react(start + 5s);
    REQUIRE(todo.closed);
    CHECK(todo.closed->code == errc::unavailable);
  }
}

TEST_CASE("nothing is delivered before the owner listens, and then everything") {
  auto master = acceptor();
  auto raw = on_wire(1, hello().any());
  for (std::uint64_t i = 2; i <= 4; ++i) {
    const auto more = on_wire(i, numbered(i));
    raw.insert(raw.end(), more.begin(), more.end());
  }
  master.receive(start, raw);
  CHECK(master.proven);
  CHECK(master.delivered.empty());
  CHECK_FALSE(master.read);
  master.open(start + 1min);
  CHECK(master.delivered == std::vector<std::uint64_t>{2, 3, 4});
  CHECK(master.read);
}

TEST_CASE("a peer that has proven itself may send large messages") {
  auto end = open_acceptor();
  end.receive(start, on_wire(2, large(2, 2 * limits::handshake_frame_max)));
  CHECK(end.delivered == std::vector<std::uint64_t>{2});
}

TEST_CASE("a gap ends the link and a repeat is dropped") {
  auto end = open_acceptor();
  end.receive(start, on_wire(2, numbered(2)));
  end.receive(start, on_wire(2, numbered(2)));
  end.receive(start, on_wire(1, numbered(1)));
  end.receive(start, beat_on_wire(2));
  end.receive(start, beat_on_wire(0));
  CHECK(end.delivered == std::vector<std::uint64_t>{2});
  CHECK(end.core().now_in() == phase::open);

  SUBCASE("shown by a message") {
    end.receive(start, on_wire(4, numbered(4)));
  }
  SUBCASE("shown by a beat") {
    end.receive(start, beat_on_wire(3));
  }
  CHECK(end.core().now_in() == phase::closing);
  end.tick(start + defaults.linger_max);
  REQUIRE(end.closed.size() == 1);
  CHECK(mentions(end.closed[0], "message 3 never came"));
  CHECK(end.delivered == std::vector<std::uint64_t>{2});
}

TEST_CASE("a stop during the handshake is not held against the dialler") {
  auto master = acceptor();
  master.tick(start + 1min);
  CHECK(master.core().now_in() == phase::handshake);
  master.receive(start + 1min, on_wire(1, hello().any()));
  CHECK(master.proven);
}

TEST_CASE("credit pauses reading, and half of it returned resumes it") {
  options o;
  o.credit_messages = 4;
  auto end = open_acceptor(o);
  std::vector<kj::byte> raw;
  for (std::uint64_t i = 2; i <= 11; ++i) {
    const auto one = on_wire(i, numbered(i));
    raw.insert(raw.end(), one.begin(), one.end());
  }
  end.receive(start, raw);
  CHECK(end.delivered.size() == 4);
  CHECK_FALSE(end.read);
  CHECK_THROWS_AS(end.core().received(start, view_of(raw)), invariant_broken);

  CHECK_FALSE(end.core().taken(start));
  CHECK(end.core().taken(start));
  end.act(start);
  CHECK(end.delivered.size() == 6);
  for (std::size_t taken = 2; taken < end.delivered.size(); ++taken) {
    end.core().taken(start);
    end.act(start);
  }
  CHECK(end.read);
  CHECK(end.delivered == std::vector<std::uint64_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("the send queue is bounded and a sender that exceeds it loses the link") {
  options o;
  o.send_queue_max = limits::frame_max + header_size;
  auto end = open_acceptor(o);
  end.stalled = true;
  const auto m = large(1, 1u << 20);
  std::size_t accepted = 0;
  while (end.core().queued_bytes() + header_size + m.size_bytes() <= o.send_queue_max) {
    REQUIRE(end.send(start, m));
    ++accepted;
  }
  CHECK(accepted == o.send_queue_max / (header_size + m.size_bytes()));
  const auto refused = end.send(start, m);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::overloaded);
  REQUIRE(end.closed.size() == 1);
  CHECK(end.closed[0].code == errc::overloaded);
  CHECK(end.core().queued_bytes() == 0);
  CHECK(end.send(start, m).error().code == errc::closed);
}

TEST_CASE("a stalled write is waited for: one batch at a time, bounded in frames and bytes") {
  auto end = open_acceptor();
  end.stalled = true;
  for (std::uint64_t i = 1; i <= 200; ++i)
    REQUIRE(end.send(start, numbered(i)));
  CHECK(frames_in(end.take_output()).size() == 1);
  end.core().written(start);
  end.act(start);
  CHECK(frames_in(end.take_output()).size() == limits::gather_frames_max);
  for (std::uint64_t i = 1; i <= 4; ++i)
    REQUIRE(end.send(start, large(i, 600u << 10)));
  for (int i = 0; i < 3; ++i) {
    end.core().written(start);
    end.act(start);
  }
  // 199 = 64 + 64 + 64 + 7: the last of those does not take a large one along beyond a mebibyte.
  CHECK(end.take_output().size() < 2 * limits::gather_bytes_max);
  CHECK(end.core().queued_bytes() > 0);
  end.stalled = false;
  end.core().written(start);
  end.act(start);
  CHECK(end.core().queued_bytes() == 0);
}

TEST_CASE("closing sends what is queued, then waits for the peer, but not for ever") {
  auto end = open_acceptor();
  end.stalled = true;
  for (std::uint64_t i = 1; i <= 100; ++i)
    REQUIRE(end.send(start, numbered(i)));
  end.core().close(start, {errc::closed, "the job is over"});
  end.act(start);
  CHECK_FALSE(end.half_closed);
  CHECK(end.send(start, numbered(101)).error().what == "the link has ended: the job is over");

  SUBCASE("the peer takes everything") {
    end.stalled = false;
    end.core().written(start);
    end.act(start);
    CHECK(frames_in(end.take_output()).size() == 100);
    CHECK(end.half_closed);
    CHECK(end.read);
    end.receive(start, on_wire(9, numbered(9))); // thrown away, also its gap
    CHECK(end.closed.empty());
    end.core().ended(start, {errc::closed, "the peer closed the link"});
    end.act(start);
  }
  SUBCASE("the peer takes nothing") {
    CHECK(end.wake_at == start + defaults.linger_max);
    end.tick(start + defaults.linger_max);
  }
  SUBCASE("the connection breaks") {
    end.core().write_failed(start, {errc::closed, "broken pipe"});
    end.act(start);
  }
  SUBCASE("the transport goes") {
    end.core().abort(start, {errc::closed, "gone"});
    end.act(start);
  }
  REQUIRE(end.closed.size() == 1);
  CHECK(end.closed[0].what == "the job is over");
  CHECK(end.delivered.empty());
}

TEST_CASE("a stop while closing is not held against the peer either, once") {
  auto end = open_acceptor();
  end.stalled = true;
  REQUIRE(end.send(start, numbered(1)));
  end.core().close(start, {errc::closed, "the job is over"});
  end.act(start);
  const auto thawed = start + 1min;
  end.tick(thawed);
  REQUIRE(end.core().now_in() == phase::closing);
  SUBCASE("what was waiting goes out") {
    end.stalled = false;
    end.core().written(thawed + 1ms);
    end.act(thawed + 1ms);
    CHECK(end.half_closed);
  }
  SUBCASE("the peer takes nothing") {
    end.tick(thawed + 2 * defaults.beat_every);
    CHECK(end.core().now_in() == phase::closed);
  }
  SUBCASE("we are late again") {
    end.tick(thawed + 1min);
    CHECK(end.core().now_in() == phase::closed);
  }
}

TEST_CASE("a write that fails does not hide what the peer said before it went") {
  auto end = open_acceptor();
  REQUIRE(end.send(start, numbered(1)));
  end.core().write_failed(start, {errc::closed, "connection reset"});
  end.act(start);
  CHECK(end.closed.empty());
  end.receive(start, on_wire(2, numbered(2)));
  CHECK(end.delivered == std::vector<std::uint64_t>{2});
  end.core().ended(start, {errc::closed, "the peer closed the link"});
  end.act(start);
  REQUIRE(end.closed.size() == 1);
  CHECK(end.closed[0].what == "the peer closed the link");
}

TEST_CASE("the end is told once, whatever follows") {
  auto end = open_acceptor();
  end.core().ended(start, {errc::closed, "first"});
  end.act(start);
  end.core().ended(start, {errc::closed, "second"});
  end.core().close(start, {errc::closed, "third"});
  end.core().abort(start, {errc::closed, "fourth"});
  end.core().received(start, view_of(beat_on_wire(1)));
  end.tick(start + 1h);
  REQUIRE(end.closed.size() == 1);
  CHECK(end.closed[0].what == "first");
  CHECK(end.wake_at == instant::max());
}
