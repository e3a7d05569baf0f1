#include "ckpt/copies/target_core.hpp"

#include "ckpt/copies/testing/target_vocabulary.hpp"
#include "ckpt/copies/testing/target_world.hpp"
#include "tests/actors/fate.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <functional>

using namespace troupe;
using namespace troupe::ckpt;
using namespace troupe::ckpt::testing;

namespace {

using lines = std::vector<std::string>;

struct play {
  target_core core{messages::author("replication_target"), 2};

  lines hears(std::uint64_t from, const messages::any_msg& m) {
    return in_words(core.heard(from, m));
  }
  lines loses(std::uint64_t which) { return in_words(core.closed(which, "gone")); }
};

/// Members 20, 21, 22, 23 and one parity: to the first comes one stripe of all others.
beginning of_four(std::uint32_t source, std::uint64_t bytes = 30) {
  beginning b;
  b.ranks = {20, 21, 22, 23};
  b.source = source;
  b.bytes = bytes;
  return b;
}

} // namespace

TEST_CASE("a pair: the image is held once it was given in full") {
  play p;
  CHECK(p.hears(7, say(beginning{})) == lines{"open 1 in 0: 10"});
  CHECK(p.hears(7, say_piece(0, 0, "abcdef")) ==
        lines{"add 1 at 0 fresh 0 times 1", "7 hears taken 6"});
  CHECK(p.hears(7, say_piece(0, 6, "ghij")) ==
        lines{"add 1 at 6 fresh 6 times 1", "7 hears taken 4"});
  const auto ended = p.core.heard(7, say_end(99));
  CHECK(in_words(ended) == lines{"finish 1: 10", "7 hears held"});
  const auto& done = std::get<target_core::finish>(ended.front());
  CHECK(done.header.magic == held_piece::magic_value);
  CHECK(done.header.members == 2);
  CHECK(done.header.parity == 1);
  CHECK(done.header.target == 0);
  CHECK(done.header.stripe == 0);
  CHECK(done.header.row == 0);
  CHECK(done.header.ranks[0] == 20);
  CHECK(done.header.ranks[1] == 21);
  CHECK(done.header.bytes[0] == 0);
  CHECK(done.header.bytes[1] == 10);
  CHECK(done.header.crc32[1] == 99);
  CHECK(done.snapshot.step == 10);
  CHECK(done.snapshot.generation == 1);
  CHECK(done.snapshot.rank == 20);
  CHECK(done.snapshot.world_size == 100);
  CHECK(p.core.stripes_open() == 0);
  // The next snapshot on the same link.
  auto next = beginning{};
  next.step = 11;
  CHECK(p.hears(7, say(next)) == lines{"open 2 in 0: 10"});
}

TEST_CASE("what may not go while a step is given is that step, and the one that is whole") {
  play p;
  auto b = beginning{};
  b.whole_generation = 1;
  b.whole_step = 9;
  const auto begun = p.core.heard(7, say(b));
  const auto& o = std::get<target_core::open>(begun.front());
  const auto may_replace = [&o](std::uint64_t generation, std::uint64_t step) {
    slot_snapshot held;
    held.generation = generation;
    held.step = step;
    return o.may_replace(held);
  };
  CHECK_FALSE(may_replace(1, 10));
  CHECK_FALSE(may_replace(1, 9));
  CHECK(may_replace(1, 8));
  // Made anew by another generation it is another state.
  CHECK(may_replace(0, 10));
  CHECK(may_replace(2, 9));
}

TEST_CASE("what the others rely on may not go for a source that knows of no whole step") {
  play p;
  auto b = of_four(1);
  b.whole_generation = 1;
  b.whole_step = 9;
  const auto whole_of = [&p](std::uint64_t who, const beginning& says) {
    for (const auto& e : p.core.heard(who, say(says)))
      if (const auto* o = std::get_if<target_core::open>(&e))
        return std::pair(o->whole.generation, o->whole.step);
    return std::pair(std::uint64_t{99}, std::uint64_t{99});
  };
  using step = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(whole_of(1, b) == step{1, 9});
  // All have broken off; the first to give the next step is a node that was replaced.
  p.loses(1);
  auto replaced = of_four(2);
  replaced.step = 11;
  CHECK(whole_of(2, replaced) == step{1, 9});
  // Each local rank has memory and sources of its own.
  auto elsewhere = of_four(3);
  elsewhere.local_rank = 1;
  CHECK(whole_of(3, elsewhere) == step{0, 0});
  // A source that names another is right, whichever is newer: ranks may have gone back.
  auto next = of_four(1);
  next.step = 12;
  next.whole_generation = 1;
  next.whole_step = 8;
  CHECK(whole_of(4, next) == step{1, 8});
}

TEST_CASE(
    "what one place's ranks rely on is no other place's, and goes only where there is no room") {
  play p;
  auto first = of_four(1);
  first.save = 1u << place_bits | 77;
  first.whole_generation = 1;
  first.whole_step = 9;
  auto other = of_four(1);
  other.save = 2u << place_bits | 78;
  const auto opened = [&p](std::uint64_t who, const beginning& says) {
    const auto out = p.core.heard(who, say(says));
    const auto found = std::find_if(out.begin(), out.end(), [](const auto& e) {
      return std::holds_alternative<target_core::open>(e);
    });
    REQUIRE(found != out.end());
    return std::get<target_core::open>(*found);
  };
  const auto of_first = opened(1, first), of_other = opened(2, other);
  CHECK(of_first.whole == target_core::step_of{1, 9, 77});
  CHECK(of_other.whole == target_core::step_of{});
  slot_snapshot held;
  held.generation = 1;
  held.step = 3;
  held.save = 5u << place_bits | 77;
  CHECK(of_first.may_replace(held));
  CHECK_FALSE(of_first.may_displace(held));
  CHECK_FALSE(of_other.may_replace(held));
  CHECK(of_other.may_displace(held));
  // A rank that gives a step of another place has not gone on from this one: nothing is dropped.
  CHECK(p.core.stripes_open() >= 2);
}

TEST_CASE("what cannot be is refused") {
  struct row {
    const char* why;
    std::function<void(beginning&)> wrong;
  };
  const row rows[] = {
      {"local rank 2", [](auto& b) { b.local_rank = 2; }},
      {"members", [](auto& b) { b.ranks = {}; }},
      {"members", [](auto& b) { b.ranks = {20}; }},
      {"a group of 17 is too large", [](auto& b) { b.ranks.assign(17, 3); }},
      {"parit", [](auto& b) { b.parity = 0; }},
      {"parit", [](auto& b) { b.parity = 2; }},
      {"a rank is twice in the group",
       [](auto& b) {
         b.ranks = {20, 20};
       }},
      {"rank 100 is not in a world of 100",
       [](auto& b) {
         b.ranks = {20, 100};
       }},
      {"member 2 gives and 0 holds, in a group of 2", [](auto& b) { b.source = 2; }},
      {"member 1 gives and 2 holds, in a group of 2", [](auto& b) { b.target = 2; }},
      {"member 1 is to hold pieces of its own image", [](auto& b) { b.target = 1; }},
      {"no image has 0 bytes", [](auto& b) { b.bytes = 0; }},
      {"no image has 17592186044417 bytes", [](auto& b) { b.bytes = (1ull << 44) + 1; }},
  };
  for (const auto& r : rows) {
    play p;
    beginning b;
    r.wrong(b);
    const auto answer = p.hears(7, say(b));
    CAPTURE(r.why);
    REQUIRE(answer.size() == 1);
    CHECK(answer.front().find("7 hears refused: ") == 0);
    CHECK(answer.front().find(r.why) != std::string::npos);
    // What it had sent before it heard that is not listened to.
    CHECK(p.hears(7, say_piece(0, 0, "abc")).empty());
    CHECK(p.hears(7, say_end()).empty());
    CHECK(p.hears(7, say(beginning{})) == lines{"open 1 in 0: 10"});
  }
}

TEST_CASE("parts that do not fit break the stripe") {
  struct row {
    const char* why;
    messages::any_msg said;
  };
  const row rows[] = {
      {"rank 21 gives nothing to stripe 1 here", say_piece(1, 4, "x")},
      {"rank 21 gives nothing to stripe 9 here", say_piece(9, 4, "x")},
      {"rank 21 gave a part of 0 bytes", say_piece(0, 4, "")},
      {"rank 21 gave a part of 64513 bytes",
       say_piece(0, 4, std::string(limits::copy_part + 1, 'x'))},
      {"rank 21 gave the part at 5 after 4 bytes", say_piece(0, 5, "x")},
      {"rank 21 gave the part at 3 after 4 bytes", say_piece(0, 3, "x")},
      {"rank 21 gave the part at 0 after 4 bytes", say_piece(0, 0, "x")},
      {"rank 21 gave more than the 10 bytes of its piece", say_piece(0, 4, "1234567")},
      {"rank 21 ended after 4 of 10 bytes for stripe 0", say_end()},
      {"rank 21 began another image before all was held", say(beginning{})},
  };
  for (const auto& r : rows) {
    play p;
    p.hears(7, say(beginning{}));
    p.hears(7, say_piece(0, 0, "abcd"));
    CHECK(p.hears(7, r.said) == lines{fmt::format("7 hears refused: {}", r.why), "drop 1"});
    CHECK(p.core.stripes_open() == 0);
    CHECK(p.hears(7, say_piece(0, 4, "efghij")).empty());
  }
}

TEST_CASE("nothing comes outside of an image") {
  play p;
  CHECK(p.hears(7, say_piece(0, 0, "x")) ==
        lines{"7 hears refused: a part of a piece came outside of an image"});
  CHECK(p.hears(8, say_end()) == lines{"8 hears refused: the end of an image came outside of one"});
  // Nor behind its end.
  p.hears(1, say(of_four(1)));
  p.hears(1, say_piece(0, 0, "0123456789"));
  CHECK(p.hears(1, say_end()).empty());
  CHECK(p.hears(1, say_piece(0, 10, "x")) ==
        lines{"1 hears refused: a part of a piece came outside of an image"});
  CHECK(p.core.stripes_open() == 1);
  // A kind of a newer source is none of ours.
  CHECK(p.hears(9, messages::build<messages::CopyHeld>({}, [](auto) {}).any()).empty());
}

TEST_CASE("a stripe is whole when all have ended, and its memory that of the longest piece") {
  play p;
  CHECK(p.hears(1, say(of_four(1, 30))) == lines{"open 1 in 0: 10"});
  CHECK(p.hears(2, say(of_four(2, 18))) == lines{});
  CHECK(p.hears(3, say(of_four(3, 36))) == lines{"grow 1: 12"});
  CHECK(p.hears(2, say_piece(0, 0, "abcdef")) ==
        lines{"add 1 at 0 fresh 0 times 1", "2 hears taken 6"});
  CHECK(p.hears(3, say_piece(0, 0, "0123456789")) ==
        lines{"add 1 at 0 fresh 6 times 1", "3 hears taken 10"});
  CHECK(p.hears(2, say_end(2)).empty());
  CHECK(p.hears(1, say_piece(0, 0, "0123456789")) ==
        lines{"add 1 at 0 fresh 10 times 1", "1 hears taken 10"});
  CHECK(p.hears(3, say_piece(0, 10, "ab")) ==
        lines{"add 1 at 10 fresh 10 times 1", "3 hears taken 2"});
  CHECK(p.hears(1, say_end(1)).empty());
  CHECK(p.hears(3, say_end(3)) ==
        lines{"finish 1: 12", "1 hears held", "2 hears held", "3 hears held"});
}

TEST_CASE("with two rows a source hears of all its stripes at once") {
  // Member 0 of five holds stripe 0 (row 0) and stripe 4 (row 1). Member 1 holds stripe 0 as well.
  const auto of_five = [](std::uint32_t source) {
    beginning b;
    b.ranks = {20, 21, 22, 23, 24};
    b.parity = 2;
    b.source = source;
    b.bytes = 9;
    return b;
  };
  play p;
  CHECK(p.hears(2, say(of_five(2))) == lines{"open 1 in 0: 3", "open 2 in 0: 3"});
  CHECK(p.hears(1, say(of_five(1))) == lines{});
  CHECK(p.hears(3, say(of_five(3))) == lines{});
  CHECK(p.hears(4, say(of_five(4))) == lines{});
  const auto gives = [&p](std::uint64_t who, std::uint32_t stripe) {
    return p.hears(who, say_piece(stripe, 0, "abc"));
  };
  CHECK(gives(2, 0) == lines{"add 1 at 0 fresh 0 times 1", "2 hears taken 3"});
  CHECK(gives(2, 4) == lines{"add 2 at 0 fresh 0 times 4", "2 hears taken 3"});
  CHECK(gives(1, 4) == lines{"add 2 at 0 fresh 3 times 2", "1 hears taken 3"});
  CHECK(gives(3, 4) == lines{"add 2 at 0 fresh 3 times 8", "3 hears taken 3"});
  CHECK(gives(3, 0) == lines{"add 1 at 0 fresh 3 times 1", "3 hears taken 3"});
  CHECK(p.hears(2, say_end()).empty());
  CHECK(p.hears(3, say_end()).empty());
  // Member 1 gives to stripe 4 only: that is whole now, and member 1's part done.
  CHECK(p.hears(1, say_end()) == lines{"finish 2: 3", "1 hears held"});
  CHECK(gives(4, 0) == lines{"add 1 at 0 fresh 3 times 1", "4 hears taken 3"});
  CHECK(p.hears(4, say_end()) ==
        lines{"finish 1: 3", "2 hears held", "3 hears held", "4 hears held"});
}

TEST_CASE(
    "a source that goes before its end breaks its stripes; all that gave to them hear which") {
  play p;
  for (const std::uint32_t who : {1, 2, 3})
    p.hears(who, say(of_four(who)));
  p.hears(2, say_piece(0, 0, "0123456789"));
  p.hears(2, say_end());
  CHECK(p.loses(1) == lines{"drop 1", "2 hears refused: rank 21 broke off: gone",
                            "3 hears refused: rank 21 broke off: gone"});
  CHECK(p.core.stripes_open() == 0);
  CHECK(p.hears(3, say_piece(0, 0, "x")).empty());
  CHECK(p.loses(2).empty());
}

TEST_CASE("a source that gives another step instead lets go those that wait for it") {
  for (const auto& [later_step, later_generation] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{11, 1}, {9, 1}, {10, 2}}) {
    play p;
    p.hears(1, say(of_four(1)));
    p.hears(1, say_piece(0, 0, "0123456789"));
    p.hears(1, say_end());
    auto next = of_four(2);
    next.step = later_step;
    next.generation = later_generation;
    const auto heard = p.hears(2, say(next));
    REQUIRE(heard.size() == 3);
    CHECK(heard[0] == "drop 1");
    CHECK(heard[1] == "1 hears refused: rank 22 gives step " + std::to_string(later_step) +
                          " of generation " + std::to_string(later_generation) + " instead");
    CHECK(heard[2] == "open 2 in 0: 10");
  }
}

TEST_CASE("one of another local rank, or one that has given already, keeps none from waiting") {
  play p;
  for (const std::uint32_t who : {1, 2}) {
    p.hears(who, say(of_four(who)));
    p.hears(who, say_piece(0, 0, "0123456789"));
    p.hears(who, say_end());
  }
  auto elsewhere = of_four(3);
  elsewhere.step = 11;
  elsewhere.local_rank = 1;
  CHECK(p.hears(3, say(elsewhere)) == lines{"open 2 in 1: 10"});
  auto after = of_four(2);
  after.step = 11;
  CHECK(p.hears(8, say(after)) == lines{"open 3 in 0: 10"});
  CHECK(p.core.stripes_open() == 3);
}

TEST_CASE("a source that goes after its end breaks nothing") {
  play p;
  for (const std::uint32_t who : {1, 2, 3}) {
    p.hears(who, say(of_four(who)));
    p.hears(who, say_piece(0, 0, "0123456789"));
  }
  CHECK(p.hears(1, say_end()).empty());
  CHECK(p.loses(1).empty());
  CHECK(p.hears(2, say_end()).empty());
  CHECK(p.hears(3, say_end()) == lines{"finish 1: 10", "2 hears held", "3 hears held"});
}

TEST_CASE("a source that repeats a step breaks its stripes: its piece is in the sum already") {
  play p;
  p.hears(1, say(of_four(1)));
  p.hears(1, say_piece(0, 0, "0123456789"));
  p.hears(1, say_end());
  p.loses(1);
  p.hears(2, say(of_four(2)));
  CHECK(p.hears(4, say(of_four(1))) ==
        lines{"drop 1", "2 hears refused: rank 21 gives its image again",
              "4 hears refused: rank 21 gives step 10 of generation 1 again"});
  CHECK(p.core.stripes_open() == 0);
}

TEST_CASE("other stripes of a refused source break, unless it had given those in full") {
  // Member 2 of four with three copies holds stripes 2, 1 and 0, each given by one.
  const auto copies = [](std::uint32_t source) {
    beginning b;
    b.ranks = {20, 21, 22, 23};
    b.parity = 3;
    b.source = source;
    b.target = 2;
    return b;
  };
  play p;
  CHECK(p.hears(3, say(copies(3))) == lines{"open 1 in 0: 10"});
  CHECK(p.hears(0, say(copies(0))) == lines{"open 2 in 0: 10"});
  CHECK(p.hears(1, say(copies(1))) == lines{"open 3 in 0: 10"});
  CHECK(p.loses(3) == lines{"drop 1"});
  CHECK(p.hears(0, say_piece(1, 0, "0123456789")) ==
        lines{"add 2 at 0 fresh 0 times 1", "0 hears taken 10"});
  CHECK(p.hears(0, say_end()) == lines{"finish 2: 10", "0 hears held"});
  CHECK(p.loses(1) == lines{"drop 3"});
}

TEST_CASE("where there is no memory all that give there hear why") {
  play p;
  p.hears(1, say(of_four(1)));
  p.hears(2, say(of_four(2)));
  CHECK(in_words(p.core.no_memory(1, "there is none")) ==
        lines{"drop 1", "1 hears refused: there is none", "2 hears refused: there is none"});
  CHECK(in_words(p.core.no_memory(1, "there is none")).empty());
}

TEST_CASE("a stripe for which no source waits goes when the next step comes") {
  play p;
  p.hears(1, say(of_four(1)));
  p.hears(1, say_piece(0, 0, "0123456789"));
  p.hears(1, say_end());
  auto next = of_four(2);
  next.step = 11;
  p.loses(1);
  CHECK(p.hears(2, say(next)) == lines{"drop 1", "open 2 in 0: 10"});
}

TEST_CASE("a piece with nothing in it counts when its source ends") {
  // A snapshot of one byte has all of it in its first piece.
  play p;
  CHECK(p.hears(1, say(of_four(1, 1))).size() == 1);
  CHECK(p.hears(2, say(of_four(2, 1))).size() <= 1);
  CHECK(p.hears(3, say(of_four(3, 1))).size() <= 1);
  std::size_t held = 0;
  for (const std::uint32_t who : {1, 2, 3}) {
    if (*piece_of({4, 1}, who, 0) == 0)
      p.hears(who, say_piece(0, 0, "x"));
    for (const auto& line : p.hears(who, say_end()))
      held += line.find("hears held") != std::string::npos ? 1 : 0;
  }
  CHECK(held == 3);
}

TEST_CASE("whatever sources say, in whatever order: the world says what must hold") {
  std::size_t finished = 0;
  for (std::uint64_t seed = 0; seed < rounds(2'000); ++seed) {
    CAPTURE(seed);
    target_world world(actors::testing::seeded(seed));
    std::string error_text;
    try {
      for (int i = 0; i < 200; ++i)
        world.strike();
    } catch (const invariant_broken& e) {
      error_text = e.what();
    }
    REQUIRE(error_text == "");
    finished += world.finished();
  }
  CHECK(finished > rounds(2'000));
}
