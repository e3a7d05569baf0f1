#include "ckpt/erasure/stripes.hpp"
#include "ckpt/limits.hpp"
#include "messages/node_names.hpp"
#include "runtime/base/random.hpp"
#include "runtime/os/bulk/bulk_exchange.hpp"
#include "runtime/os/copies/replication_source.hpp"
#include "runtime/os/copies/replication_target.hpp"
#include "runtime/os/copies/testing/memory_of_others.hpp"
#include "tests/link/asio_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::ckpt;
using troupe::ckpt::testing::memory_of_others;

namespace {

/// Nodes of a group, each with memory for the others' snapshots, on real links.
struct nodes {
  explicit nodes(const code& c)
      : how(c), memory(c.members), of_local_1(c.members), targets(c.members) {
    for (std::uint32_t i = 0; i < how.members; ++i)
      bulk.push_back(links_of(i));
    constexpr std::uint32_t before = 10; // ranks of a node that is in no group
    owners->learn(messages::build<messages::RankOwners>(
        {"master", {}, generation{1}}, [this](messages::RankOwners::Builder b) {
          auto names = b.initNodes(1 + how.members);
          auto slots = b.initSlots(1 + how.members);
          slots.set(0, before);
          for (std::uint32_t i = 0; i < how.members; ++i) {
            names.set(1 + i, messages::fingerprint(fmt::format("node-{}", i)));
            slots.set(1 + i, 1);
          }
        }));
    for (std::uint32_t i = 0; i < how.members; ++i)
      open(i);
  }

  ~nodes() {
    sources.clear();
    targets.clear();
  }

  void open(std::uint32_t member) {
    auto made = replication_target::open(
        bulk[member], owners, {memory[member].descriptors(), of_local_1[member].descriptors()},
        [this](const std::string&, const log::event& e) {
          const std::lock_guard held(lock);
          told.push_back(e.text);
        });
    REQUIRE(made);
    targets[member] = std::move(*made);
  }

  std::shared_ptr<ports::transport> transport() {
    return {std::shared_ptr<void>{}, &world.transport()};
  }

  std::shared_ptr<os::bulk_exchange> links_of(std::uint32_t member,
                                              std::uint64_t bytes_per_second = 0) {
    auto opened = os::bulk_exchange::open(
        transport(), world.place(), {"job", fmt::format("node-{}", member), bytes_per_second});
    REQUIRE(opened);
    return std::move(*opened);
  }

  std::string address(std::uint32_t member) const {
    return ports::to_string(bulk[member]->where());
  }

  replication_source& source(std::uint32_t member) {
    while (sources.size() < how.members)
      sources.push_back(std::make_unique<replication_source>(
          bulk[sources.size()], fmt::format("node-{}", sources.size())));
    return *sources[member];
  }

  snapshot_to_copy snapshot(std::uint32_t member, std::uint64_t step, std::size_t bytes) const {
    snapshot_to_copy i;
    i.step = step;
    i.made_by = generation{1};
    i.rank = 10 + member;
    i.world_size = 100;
    i.bytes = bytes;
    i.by.parity = how.parity;
    i.by.me = member;
    for (std::uint32_t m = 0; m < how.members; ++m)
      i.by.members.push_back({10 + m, address(m)});
    i.within = 1min;
    return i;
  }

  /// `member` gives this; the answer comes.
  std::future<result<void>> gives(const snapshot_to_copy& snapshot, const std::string& content) {
    auto answer = std::make_shared<std::promise<result<void>>>();
    source(snapshot.by.me)
        .give(snapshot, {reinterpret_cast<const std::byte*>(content.data()), content.size()},
              [answer](const result<void>& r) { answer->set_value(r); });
    return answer->get_future();
  }

  /// All give snapshots of this step; nothing goes wrong.
  void all_give(std::uint64_t step, const std::vector<std::string>& snapshots,
                std::optional<held_step> whole = {}) {
    std::vector<std::future<result<void>>> answers;
    for (std::uint32_t m = 0; m < how.members; ++m) {
      auto one = snapshot(m, step, snapshots[m].size());
      one.whole = whole;
      answers.push_back(gives(one, snapshots[m]));
    }
    for (auto& a : answers) {
      const auto r = a.get();
      CHECK_MESSAGE(r.has_value(), (r ? "" : r.error().what));
    }
  }

  const code how;
  std::mutex lock;
  std::vector<std::string> told;
  const std::shared_ptr<shared_rank_owners> owners = std::make_shared<shared_rank_owners>();
  std::vector<memory_of_others> memory, of_local_1; ///< the first of local rank 0
  troupe::testing::asio_world world;
  std::vector<std::shared_ptr<os::bulk_exchange>> bulk;
  std::vector<std::unique_ptr<replication_target>> targets;
  std::vector<std::unique_ptr<replication_source>> sources;
};

std::string some_bytes(std::uint64_t seed, std::size_t size) {
  random_source chance(seed);
  std::string bytes(size, '\0');
  for (auto& b : bytes)
    b = static_cast<char>(chance.next());
  return bytes;
}

/// Of different lengths, which no piece divides.
std::vector<std::string> some_snapshots(const code& c, std::uint64_t seed) {
  std::vector<std::string> snapshots;
  for (std::uint32_t m = 0; m < c.members; ++m)
    snapshots.push_back(some_bytes(seed + m, 2'500'000 + 300'001 * m));
  return snapshots;
}

std::string sum_of(const code& c, std::uint32_t stripe, std::uint32_t row,
                   const std::vector<std::string>& snapshots) {
  std::string sum;
  for (std::uint32_t m = 0; m < c.members; ++m)
    if (const auto piece = piece_of(c, m, stripe)) {
      const auto part = piece_in(c, snapshots[m].size(), *piece);
      if (sum.size() < part.bytes)
        sum.resize(part.bytes);
      accumulate(sum.data(), snapshots[m].data() + part.from, part.bytes, coefficient(c, row, m));
    }
  return sum;
}

std::size_t held_of(const memory_of_others& memory, std::uint64_t step) {
  const auto all = memory.held();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [step](const auto& p) { return p.snapshot.step == step; }));
}

void check_piece(const code& c, const memory_of_others::piece& p, std::uint32_t at,
                 const std::vector<std::string>& snapshots) {
  CHECK(p.header.magic == held_piece::magic_value);
  CHECK(p.header.members == c.members);
  CHECK(p.header.parity == c.parity);
  CHECK(p.header.target == at);
  CHECK(target(c, p.header.stripe, p.header.row) == at);
  CHECK(p.snapshot.generation == 1);
  CHECK(p.snapshot.rank == 10 + at);
  CHECK(p.snapshot.world_size == 100);
  CHECK((p.parity == sum_of(c, p.header.stripe, p.header.row, snapshots)));
  for (std::uint32_t m = 0; m < c.members; ++m) {
    const bool gave = piece_of(c, m, p.header.stripe).has_value();
    CHECK(p.header.ranks[m] == 10 + m);
    CHECK(p.header.bytes[m] == (gave ? snapshots[m].size() : 0));
    CHECK(p.header.crc32[m] ==
          (gave ? libdeflate_crc32(0, snapshots[m].data(), snapshots[m].size()) : 0));
  }
}

} // namespace

TEST_CASE("all give, and each holds the sums of what the others gave it") {
  for (const auto& c : {code{2, 1}, code{3, 2}, code{4, 1}, code{5, 2}}) {
    CAPTURE(c.members);
    nodes n(c);
    const auto snapshots = some_snapshots(c, 1);
    n.all_give(1, snapshots);
    for (std::uint32_t m = 0; m < c.members; ++m) {
      const auto held = n.memory[m].held();
      REQUIRE(held.size() == c.parity);
      for (const auto& p : held)
        check_piece(c, p, m, snapshots);
    }
    CHECK(n.told.empty());
  }
}

TEST_CASE(
    "steps follow each other: what is whole stays until the next is, and memory is used anew") {
  const code c{5, 2};
  nodes n(c);
  std::optional<held_step> whole;
  for (std::uint64_t step = 1; step <= 8; ++step) {
    CAPTURE(step);
    // Longer and shorter ones in the same memory.
    auto snapshots = some_snapshots(c, 10 * step);
    if (step % 2 == 0)
      for (auto& i : snapshots)
        i.resize(i.size() / 3);
    n.all_give(step, snapshots, whole);
    for (std::uint32_t m = 0; m < c.members; ++m) {
      for (const auto& p : n.memory[m].held())
        if (p.snapshot.step == step)
          check_piece(c, p, m, snapshots);
      CHECK(held_of(n.memory[m], step) == c.parity);
      if (step > 1)
        CHECK(held_of(n.memory[m], step - 1) == c.parity);
    }
    whole = held_step{generation{1}, step};
  }
}

TEST_CASE(
    "local ranks whose snapshots come in another order at each node do not wait for each other") {
  const code c{3, 1};
  const auto snapshots = some_snapshots(c, 1);
  nodes n(c);
  std::vector<std::future<result<void>>> answers;
  for (std::uint32_t m = 0; m < c.members; ++m)
    for (const local_rank turn : {0, 1}) {
      auto one = n.snapshot(m, 1, snapshots[m].size());
      one.local = m == 0 ? 1 - turn : turn;
      one.within = 5s;
      answers.push_back(n.gives(one, snapshots[m]));
    }
  for (auto& a : answers) {
    const auto r = a.get();
    CHECK_MESSAGE(r.has_value(), (r ? "" : r.error().what));
  }
  for (std::uint32_t m = 0; m < c.members; ++m) {
    CHECK(held_of(n.memory[m], 1) == 1);
    CHECK(held_of(n.of_local_1[m], 1) == 1);
  }
}

TEST_CASE("with as many pieces as there may be the step before the whole one goes") {
  const code c{5, 4};
  nodes n(c);
  n.all_give(1, some_snapshots(c, 1));
  n.all_give(2, some_snapshots(c, 2), held_step{generation{1}, 1});
  for (const auto& memory : n.memory) {
    CHECK(held_of(memory, 1) == 4);
    CHECK(held_of(memory, 2) == 4);
  }
  // No source says that the second is whole: the first stays, and what has to go is the second.
  n.all_give(3, some_snapshots(c, 3), held_step{generation{1}, 1});
  for (const auto& memory : n.memory) {
    CHECK(held_of(memory, 1) == 4);
    CHECK(held_of(memory, 2) == 0);
    CHECK(held_of(memory, 3) == 4);
  }
  n.all_give(4, some_snapshots(c, 4), held_step{generation{1}, 3});
  for (const auto& memory : n.memory) {
    CHECK(held_of(memory, 1) == 0);
    CHECK(held_of(memory, 3) == 4);
    CHECK(held_of(memory, 4) == 4);
  }
}

TEST_CASE("where all pieces have to stay, another finds no memory") {
  const code c{2, 1};
  nodes n(c);
  for (std::size_t i = 0; i < slots::count(); ++i) {
    auto words = n.memory[0].words();
    const auto slot = words.begin_where([](std::size_t) { return false; });
    REQUIRE(slot);
    words.finish(*slot, {7, 1, 0, 10, 100, 0}); // of the same place as the one that comes
  }
  auto snapshot = n.snapshot(1, 8, 10);
  snapshot.whole = held_step{generation{1}, 7};
  const std::string content(10, 'x');
  const auto answer = n.gives(snapshot, content).get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what ==
        fmt::format("rank 10's copy at {}: the memory for others' images of local rank 0 holds {} "
                    "pieces that may not go",
                    n.address(0), slots::count()));
}

TEST_CASE("a target that goes is named, with its rank and address; the others drop their part") {
  const code c{4, 1};
  const auto snapshots = some_snapshots(c, 1);
  nodes n(c);
  // Three of four begin; the stripes that lack the fourth's piece wait for it.
  std::vector<std::future<result<void>>> answers;
  for (std::uint32_t m = 0; m < 3; ++m)
    answers.push_back(n.gives(n.snapshot(m, 1, snapshots[m].size()), snapshots[m]));
  // Stripe 3 is held by the fourth, which needs nothing of its own.
  REQUIRE(n.world.until([&n] { return n.memory[3].count(slot_state::ready) == 1; }));
  const auto where = n.address(2);
  n.targets[2].reset();
  for (std::uint32_t m = 0; m < 2; ++m) {
    const auto answer = answers[m].get();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().what.find(fmt::format("rank 12's copy at {}: ", where)) == 0);
  }
  CHECK(n.memory[2].count(slot_state::writing) == 0);
}

TEST_CASE("a source that goes breaks what it began, and the others are told which") {
  const code c{3, 1};
  const auto snapshots = some_snapshots(c, 1);
  const auto large = some_bytes(9, 20'000'000);
  std::promise<result<void>> slow_answer;
  nodes n(c);
  auto lone = std::make_unique<replication_source>(n.links_of(0, 1), "node-0");
  lone->give(n.snapshot(0, 1, large.size()),
             {reinterpret_cast<const std::byte*>(large.data()), large.size()},
             [&slow_answer](const result<void>& r) { slow_answer.set_value(r); });
  // It has begun at both, and one byte a second will never be enough.
  REQUIRE(n.world.until([&n] {
    return n.memory[1].count(slot_state::writing) == 1 &&
           n.memory[2].count(slot_state::writing) == 1;
  }));
  auto other = n.gives(n.snapshot(1, 1, snapshots[1].size()), snapshots[1]);
  REQUIRE(n.world.until([&n] { return n.memory[0].count(slot_state::writing) == 1; }));
  lone.reset();
  const auto given_up = slow_answer.get_future().get();
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().what == "copies are given up: this process ends");
  const auto answer = other.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what.find(
            fmt::format("rank 12's copy at {}: rank 10 broke off: ", n.address(2))) == 0);
  // What the other had given in full waits for the third; in the next steps no source waits.
  std::uint64_t step = 1;
  CHECK(n.world.until([&] {
    n.all_give(++step, snapshots);
    return std::all_of(n.memory.begin(), n.memory.end(),
                       [](const auto& m) { return m.count(slot_state::writing) == 0; });
  }));
  for (const auto& m : n.memory)
    CHECK(held_of(m, 1) == 0);
  const std::lock_guard held(n.lock);
  CHECK_FALSE(n.told.empty());
}

TEST_CASE("time is up: the target that lacks something is named") {
  const code c{3, 1};
  const auto snapshots = some_snapshots(c, 1);
  nodes n(c);
  auto snapshot = n.snapshot(0, 1, snapshots[0].size());
  snapshot.within = 200ms;
  const auto answer = n.gives(snapshot, snapshots[0]).get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what ==
        fmt::format("rank 11's copy at {}: not held within 200 ms", n.address(1)));
}

TEST_CASE("a new target finds what the last one held, and drops what was half there") {
  const code c{2, 1};
  nodes n(c);
  const auto snapshots = some_snapshots(c, 1);
  n.all_give(1, snapshots);
  auto words = n.memory[0].words();
  REQUIRE(words.begin_where([](std::size_t) { return false; }));
  n.targets[0].reset();
  n.open(0);
  CHECK(n.memory[0].count(slot_state::writing) == 0);
  CHECK(held_of(n.memory[0], 1) == 1);
  // The source's link has gone with the old target, or goes now: a snapshot may fail of that, once.
  const auto again = some_snapshots(c, 2);
  n.sources.clear();
  n.all_give(2, again);
  CHECK(held_of(n.memory[0], 2) == 1);
}

TEST_CASE("a node that takes no copies says so, and the source names it") {
  nodes n({3, 1});
  n.targets[1].reset();
  const std::string content(1'000, 'x');
  const auto answer = n.gives(n.snapshot(0, 1, content.size()), content).get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what ==
        fmt::format("rank 11's copy at {}: this node takes no copies of other nodes' images",
                    n.address(1)));
}

TEST_CASE("what cannot be given is refused at once, or when its turn has come") {
  nodes n({2, 1});
  const std::string content(10, 'x');
  auto wrong = n.snapshot(1, 1, 10);
  wrong.by.parity = 2;
  CHECK_FALSE(n.gives(wrong, content).get());
  wrong = n.snapshot(1, 1, 10);
  wrong.by.members[0].address = "nowhere";
  const auto answer = n.gives(wrong, content).get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what == "'nowhere' is no host:port");
}

TEST_CASE(
    "every caller that waits hears once, also of a source that ends; too many are told at once") {
  const code c{3, 1};
  const auto snapshots = some_snapshots(c, 1);
  std::mutex lock;
  std::vector<int> answers(limits::persist_requests_max + 2);
  nodes n(c);
  const auto give = [&](std::size_t which) {
    n.source(0).give(n.snapshot(0, which, snapshots[0].size()),
                     {reinterpret_cast<const std::byte*>(snapshots[0].data()), snapshots[0].size()},
                     [&lock, &answers, which](const result<void>& r) {
                       const std::lock_guard held(lock);
                       answers[which] += r ? 1'000 : r.error().code == errc::overloaded ? 10 : 1;
                     });
  };
  give(0);
  // The first waits for what others do not give.
  REQUIRE(n.world.until([&n] { return n.memory[1].count(slot_state::writing) == 1; }));
  for (std::size_t which = 1; which < answers.size(); ++which)
    give(which);
  CHECK(answers.back() == 10);
  n.sources.clear();
  CHECK(std::all_of(answers.begin(), answers.end() - 1, [](int a) { return a == 1; }));
}

TEST_CASE("a node that gives in another's place is let go, and the stripes of its ranks break") {
  nodes n({3, 1});
  const auto snapshots = some_snapshots(n.how, 7);
  // Node 1 gives what would be rank 12's snapshot.
  auto false_one = n.snapshot(2, 100, snapshots[2].size());
  auto answer = std::make_shared<std::promise<result<void>>>();
  n.source(1).give(false_one,
                   {reinterpret_cast<const std::byte*>(snapshots[2].data()), snapshots[2].size()},
                   [answer](const result<void>& r) { answer->set_value(r); });
  const auto given = answer->get_future().get();
  CHECK_FALSE(given);
  {
    const std::lock_guard lock(n.lock);
    REQUIRE_FALSE(n.told.empty());
    CHECK(n.told.front().find(
              "node node-1 gives as rank 12, which it does not run in generation 1") == 0);
  }
  n.all_give(101, snapshots);
}
