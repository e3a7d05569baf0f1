#include "runtime/link/link_core.hpp"
#include "tests/link/open_ends.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::link;
using namespace troupe::testing;

TEST_CASE("beats fill the silence and carry the number of the last message") {
  auto end = open_acceptor();
  CHECK(end.wake_at == start + defaults.beat_every);
  end.tick(start + defaults.beat_every - 1ms);
  CHECK(end.out.empty());
  end.tick(start + defaults.beat_every);
  auto beats = frames_in(end.take_output());
  REQUIRE(beats.size() == 1);
  CHECK_FALSE(beats[0].message);
  CHECK(beats[0].sequence == 0);

  const auto spoke = start + defaults.beat_every * 3 / 2;
  REQUIRE(end.send(spoke, numbered(1)));
  end.take_output();
  end.tick(start + 2 * defaults.beat_every);
  CHECK(end.out.empty()); // the message was sign of life enough
  end.tick(spoke + defaults.beat_every);
  beats = frames_in(end.take_output());
  REQUIRE(beats.size() == 1);
  CHECK(beats[0].sequence == 1);
}

TEST_CASE("any byte is a sign of life, silence ends the link") {
  auto end = open_acceptor();
  const auto slow = on_wire(2, numbered(2));
  auto now = start;
  for (std::size_t i = 0; i < 8; ++i) {
    now = lives(end, now, now + 1s);
    end.receive(now, {slow[i]});
  }
  CHECK(end.core().now_in() == phase::open);
  const auto at_the_latest = now + silent_for_max(defaults, true);
  CHECK(lives(end, now, now + 1h) == at_the_latest);
  REQUIRE(end.closed.size() == 1);
  CHECK(end.closed[0].code == errc::unavailable);
  CHECK(mentions(end.closed[0], "nothing heard for 1.8 s"));
  CHECK(end.how == ports::link_end::silent);
}

TEST_CASE("when no other peer was heard either, this end may be cut off") {
  auto end = open_acceptor();
  const auto dead_at = lives(end, start, start + 1h);
  auto same = [&](duration later) {
    auto one = open_acceptor();
    lives(one, start, dead_at - 1ns);
    one.core().tick(dead_at, start + later);
    one.act(dead_at);
    REQUIRE(one.closed.size() == 1);
    return one.how;
  };
  CHECK(same(0s) == ports::link_end::isolated);
  CHECK(same(2 * defaults.beat_every) == ports::link_end::isolated);
  CHECK(same(2 * defaults.beat_every + 1ms) == ports::link_end::silent);
}

TEST_CASE("a peer that pauses for a second stays, one that is silent is dead within the lease") {
  for (const bool as_dialler : {false, true}) {
    CAPTURE(as_dialler);
    auto end = as_dialler ? open_dialler() : open_acceptor();
    auto now = start;
    const auto beat = [&end, &now] {
      now = lives(end, now, now + defaults.beat_every);
      end.receive(now, beat_on_wire(0));
    };
    for (int i = 0; i < 40; ++i)
      beat();
    for (int i = 0; i < 5; ++i) {
      now = lives(end, now, now + 1s);
      beat();
      REQUIRE(end.core().now_in() == phase::open);
      for (int calm = 0; calm < 20; ++calm)
        beat();
    }
    const auto silent_since = now;
    now = lives(end, now, now + 1h);
    CHECK(end.core().now_in() == phase::closed);
    CHECK(now - silent_since <= (as_dialler ? defaults.lease * 3 / 4 : defaults.lease * 7 / 8));
  }
}

TEST_CASE("bytes that wait to be read when the time is up are read first, once") {
  // Our own thread comes late, as it does under load: by less than a beat.
  auto twin = open_acceptor();
  const auto dead_at = lives(twin, start, start + 1h);
  auto end = open_acceptor();
  lives(end, start, dead_at);
  end.tick(dead_at + 100ms);
  REQUIRE(end.core().now_in() == phase::open);
  SUBCASE("there was something") {
    end.receive(dead_at + 101ms, beat_on_wire(1));
    end.tick(dead_at + 300ms);
    CHECK(end.core().now_in() == phase::open);
  }
  SUBCASE("there was nothing, and being late again and again does not help it") {
    auto now = dead_at + 100ms;
    while (end.core().now_in() == phase::open && now < dead_at + 1min)
      end.tick(now = end.wake_at + 100ms);
    CHECK(now <= dead_at + defaults.beat_every + 100ms);
  }
}

TEST_CASE("a connection that was closed while we were away is told apart") {
  struct row {
    duration away;
    ports::link_end how;
  };
  for (const auto& r : {row{900ms, ports::link_end::closed}, row{1s, ports::link_end::paused_here},
                        row{1min, ports::link_end::paused_here}}) {
    CAPTURE(r.away.count());
    auto end = open_acceptor();
    const auto back = start + r.away;
    SUBCASE("the clock comes first") {
      end.tick(back);
    }
    SUBCASE("what was said meanwhile comes first") {
      end.receive(back, beat_on_wire(1));
    }
    SUBCASE("the end comes first") {}
    end.core().ended(back + 1ms, {errc::closed, "the peer closed the connection"});
    end.act(back + 1ms);
    REQUIRE(end.closed.size() == 1);
    CHECK(end.how == r.how);
  }
  // Long after we were back it means what it always means.
  auto end = open_acceptor();
  end.tick(start + 1min);
  auto now = start + 1min;
  for (int i = 0; i < 8; ++i) {
    now = lives(end, now, now + defaults.beat_every);
    end.receive(now, beat_on_wire(1));
  }
  end.core().ended(now, {errc::closed, "the peer closed the connection"});
  end.act(now);
  CHECK(end.how == ports::link_end::closed);
}

TEST_CASE("an end that was stopped itself first hears what the peer has said meanwhile") {
  auto end = open_acceptor();
  const auto thawed = start + 1min;
  end.tick(thawed);
  REQUIRE(end.core().now_in() == phase::open);

  SUBCASE("a peer that is there stays") {
    end.receive(thawed + 1ms, beat_on_wire(1));
    end.tick(thawed + 2 * defaults.beat_every);
    CHECK(end.core().now_in() == phase::open);
  }
  SUBCASE("a peer that is gone is not spared for long") {
    CHECK(end.wake_at <= thawed + 2 * defaults.beat_every);
    end.tick(thawed + defaults.beat_every);
    end.tick(thawed + 2 * defaults.beat_every);
    CHECK(end.core().now_in() == phase::closed);
  }
  SUBCASE("being stopped again and again does not keep a silent peer for ever") {
    // Each tick comes late, but never as late as a stop.
    auto now = thawed;
    while (end.core().now_in() == phase::open && now < thawed + 1min)
      end.tick(now += defaults.beat_every);
    CHECK(now <= thawed + 4 * defaults.beat_every);
  }
}

TEST_CASE("a peer is not called silent while its owner does not listen") {
  options o;
  o.credit_messages = 1;
  auto end = open_acceptor(o);
  end.receive(start, on_wire(2, numbered(2)));
  REQUIRE_FALSE(end.read);
  for (auto now = start; now < start + 1min; now += 1s)
    end.tick(now);
  CHECK(end.core().now_in() == phase::open);

  CHECK(end.core().taken(start + 1min));
  end.act(start + 1min);
  CHECK(end.read);
  const auto dead_at = lives(end, start + 1min, start + 1h);
  CHECK(end.core().now_in() == phase::closed);
  CHECK(dead_at > start + 1min + 1s);
}
