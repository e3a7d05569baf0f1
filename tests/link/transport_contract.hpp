#pragma once

#include "runtime/ports/transport.hpp"
#include "tests/link/samples.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What every ports::transport promises, whatever carries the bytes. A world is
/// default-constructible and has
///
///     ports::transport& transport();   one that reaches itself; links of which both ends are in
///     this process ports::endpoint place();         where it may listen bool until(condition) lets
///     the world go on until condition() is true; false if it has lost patience
///
/// and TROUPE_TRANSPORT_CONTRACT(world) runs all of this on it.
namespace troupe::testing {

/// An owner of a connection: keeps what it hears. Its connection's events may come from any thread.
class owner {
 public:
  explicit owner(ports::connection_ptr link) : link_(std::move(link)) {}

  ports::connection& link() { return *link_; }

  /// Listens; messages are taken as they come unless `keeps_all`.
  void open(bool keeps_all = false) {
    auto ears = heard_;
    const std::weak_ptr<ports::connection> link = link_;
    link_->open({[ears, link, keeps_all](const messages::any_msg& m) {
                   {
                     const std::lock_guard lock(ears->mutex);
                     ears->numbers.push_back(number_of(m));
                     ears->bytes += m.size_bytes();
                     if (!ears->reasons.empty())
                       ears->spoke_after_death = true;
                   }
                   if (const auto alive = link.lock(); alive && !keeps_all)
                     alive->taken();
                 },
                 [ears](ports::link_ending end) {
                   const std::lock_guard lock(ears->mutex);
                   ears->reasons.push_back(std::move(end.reason));
                 }});
  }

  void let_go() { link_.reset(); }

  std::vector<std::uint64_t> numbers() const { return locked(&heard::numbers); }
  std::size_t bytes() const { return locked(&heard::bytes); }
  std::vector<std::string> reasons() const { return locked(&heard::reasons); }
  bool closed() const { return !reasons().empty(); }
  bool spoke_after_death() const { return locked(&heard::spoke_after_death); }

 private:
  struct heard {
    std::mutex mutex;
    std::vector<std::uint64_t> numbers;
    std::size_t bytes = 0;
    std::vector<std::string> reasons;
    bool spoke_after_death = false;
  };

  template<class T>
  T locked(T heard::*member) const {
    const std::lock_guard lock(heard_->mutex);
    return (*heard_).*member;
  }

  ports::connection_ptr link_;
  std::shared_ptr<heard> heard_ = std::make_shared<heard>();
};

/// Peers that a listener has met, in order.
class accepted_links {
 public:
  ports::transport::acceptor acceptor() {
    return [book = met_](ports::peer p) {
      const std::lock_guard lock(book->mutex);
      book->names.emplace_back(p.hello.read()->getNode().cStr());
      book->addresses.emplace_back(p.hello.read()->getAddress().cStr());
      book->links.push_back(std::move(p.link));
    };
  }

  std::vector<std::string> names() const {
    const std::lock_guard lock(met_->mutex);
    return met_->names;
  }

  std::vector<std::string> addresses() const {
    const std::lock_guard lock(met_->mutex);
    return met_->addresses;
  }

  ports::connection_ptr link(std::size_t i) const {
    const std::lock_guard lock(met_->mutex);
    return met_->links.at(i);
  }

  void forget() {
    const std::lock_guard lock(met_->mutex);
    met_->links.clear();
  }

 private:
  struct met {
    std::mutex mutex;
    std::vector<std::string> names;
    std::vector<std::string> addresses;
    std::vector<ports::connection_ptr> links;
  };
  std::shared_ptr<met> met_ = std::make_shared<met>();
};

/// The answer to a dial.
class dial_answer {
 public:
  ports::transport::dialled callback() {
    return [paper = slot_](result<ports::connection_ptr> answer) {
      const std::lock_guard lock(paper->mutex);
      paper->answers.push_back(std::move(answer));
    };
  }

  std::size_t count() const {
    const std::lock_guard lock(slot_->mutex);
    return slot_->answers.size();
  }

  result<ports::connection_ptr> take() {
    const std::lock_guard lock(slot_->mutex);
    auto answer = std::move(slot_->answers.at(0));
    slot_->answers.at(0) = failure(errc::closed, "taken");
    return answer;
  }

 private:
  struct slot {
    std::mutex mutex;
    std::vector<result<ports::connection_ptr>> answers;
  };
  std::shared_ptr<slot> slot_ = std::make_shared<slot>();
};

template<class World>
result<ports::connection_ptr> dial(World& world, const ports::endpoint& where,
                                   const std::string& node = "node-0") {
  dial_answer answer;
  world.transport().dial(where, hello(node), answer.callback());
  REQUIRE(world.until([&answer] { return answer.count() == 1; }));
  return answer.take();
}

/// A world with one link in it. The master's end is not opened yet, nor is the node's.
template<class World>
struct linked {
  World world;
  accepted_links accepted;
  std::unique_ptr<ports::listener> listener;
  std::optional<owner> node;
  std::optional<owner> master;

  linked() {
    auto listening = world.transport().listen(world.place(), accepted.acceptor());
    REQUIRE_MESSAGE(listening.has_value(), listening.error().what);
    listener = std::move(*listening);
    auto dialled = dial(world, listener->where());
    REQUIRE_MESSAGE(dialled.has_value(), dialled.error().what);
    node.emplace(std::move(*dialled));
    REQUIRE(world.until([this] { return accepted.names().size() == 1; }));
    master.emplace(accepted.link(0));
    accepted.forget();
  }
};

inline std::vector<std::uint64_t> up_to(std::uint64_t n) {
  std::vector<std::uint64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

} // namespace troupe::testing

// doctest's templates want the global namespace.
using namespace troupe;
using namespace troupe::testing;

TEST_CASE_TEMPLATE_DEFINE("contract: a node that dials is met with its Hello", World,
                          contract_hello) {
  linked<World> l;
  CHECK(l.accepted.names() == std::vector<std::string>{"node-0"});
  CHECK(l.listener->where().port != 0);
  CHECK_FALSE(l.node->link().peer().empty());
  CHECK_FALSE(l.master->link().peer().empty());
}

TEST_CASE_TEMPLATE_DEFINE("contract: messages arrive in order, in both directions", World,
                          contract_order) {
  linked<World> l;
  l.node->open();
  l.master->open();
  const std::uint64_t count = 2'000;
  for (std::uint64_t i = 1; i <= count; ++i) {
    REQUIRE(l.node->link().send(numbered(i)));
    REQUIRE(l.master->link().send(numbered(i, std::string(i % 300, 'x'))));
  }
  CHECK(l.world.until(
      [&l] { return l.node->numbers().size() == count && l.master->numbers().size() == count; }));
  CHECK(l.node->numbers() == up_to(count));
  CHECK(l.master->numbers() == up_to(count));
}

TEST_CASE_TEMPLATE_DEFINE("contract: a large message passes", World, contract_large) {
  linked<World> l;
  l.master->open();
  const auto m = large(1, 6u << 20);
  REQUIRE(l.node->link().send(m));
  REQUIRE(l.node->link().send(numbered(2)));
  CHECK(l.world.until([&l] { return l.master->numbers().size() == 2; }));
  CHECK(l.master->bytes() == m.size_bytes() + numbered(2).size_bytes());
}

TEST_CASE_TEMPLATE_DEFINE("contract: what is said before the owner listens waits for it", World,
                          contract_early) {
  linked<World> l;
  for (std::uint64_t i = 1; i <= 10; ++i)
    REQUIRE(l.node->link().send(numbered(i)));
  l.node->open();
  REQUIRE(l.master->link().send(numbered(1)));
  CHECK(l.world.until([&l] { return l.node->numbers().size() == 1; }));
  CHECK(l.master->numbers().empty());
  l.master->open();
  CHECK(l.world.until([&l] { return l.master->numbers().size() == 10; }));
  CHECK(l.master->numbers() == up_to(10));
}

TEST_CASE_TEMPLATE_DEFINE(
    "contract: no more is delivered than there is credit, until messages are taken", World,
    contract_credit) {
  linked<World> l;
  l.node->open();
  l.master->open(true);
  const auto credit = limits::credit_messages;
  for (std::uint64_t i = 1; i <= 3 * credit; ++i)
    REQUIRE(l.node->link().send(numbered(i)));
  REQUIRE(l.world.until([&l] { return l.master->numbers().size() >= limits::credit_messages; }));
  // The other direction is not hindered, and by the time it has answered nothing more has come.
  REQUIRE(l.master->link().send(numbered(1)));
  REQUIRE(l.world.until([&l] { return l.node->numbers().size() == 1; }));
  CHECK(l.master->numbers().size() == credit);
  for (std::size_t taken = 0; taken < 3 * credit; ++taken) {
    REQUIRE(l.world.until([&l, taken] { return l.master->numbers().size() > taken; }));
    l.master->link().taken();
  }
  CHECK(l.master->numbers() == up_to(3 * credit));
}

TEST_CASE_TEMPLATE_DEFINE("contract: closing sends what is queued first", World, contract_flush) {
  linked<World> l;
  l.node->open();
  l.master->open();
  for (std::uint64_t i = 1; i <= 200; ++i)
    REQUIRE(l.master->link().send(numbered(i, std::string(200, 'x'))));
  l.master->link().close("the job is over");
  CHECK(l.master->link().send(numbered(201)).error().code == errc::closed);
  CHECK(l.world.until([&l] { return l.master->closed() && l.node->closed(); }));
  CHECK(l.node->numbers() == up_to(200));
  CHECK(l.master->reasons() == std::vector<std::string>{"the job is over"});
  CHECK(l.node->reasons().size() == 1);
  CHECK_FALSE(l.node->spoke_after_death());
  CHECK(l.node->link().send(numbered(1)).error().code == errc::closed);
}

TEST_CASE_TEMPLATE_DEFINE("contract: letting go of a connection closes it, queued messages first",
                          World, contract_drop) {
  linked<World> l;
  l.node->open();
  REQUIRE(l.master->link().send(numbered(1)));
  l.master->let_go();
  CHECK(l.world.until([&l] { return l.node->closed(); }));
  CHECK(l.node->numbers() == up_to(1));
}

TEST_CASE_TEMPLATE_DEFINE("contract: both ends may close at once, and each is told once why", World,
                          contract_both_close) {
  linked<World> l;
  l.node->open();
  l.master->open();
  l.node->link().close("node's reason");
  l.master->link().close("master's reason");
  l.node->link().close("another reason");
  CHECK(l.world.until([&l] { return l.master->closed() && l.node->closed(); }));
  CHECK(l.node->reasons() == std::vector<std::string>{"node's reason"});
  // On a real network the node's end may arrive before the master has decided on its own.
  const auto told = l.master->reasons();
  REQUIRE(told.size() == 1);
  CHECK((told[0] == "master's reason" || told[0] == "the peer closed the connection"));
}

TEST_CASE_TEMPLATE_DEFINE("contract: the opener of a connection that has ended is told", World,
                          contract_late_open) {
  linked<World> l;
  l.node->open();
  l.node->link().close("early");
  REQUIRE(l.world.until([&l] { return l.node->closed(); }));
  l.master->open();
  CHECK(l.world.until([&l] { return l.master->closed(); }));
}

TEST_CASE_TEMPLATE_DEFINE("contract: an end that sends faster than the peer takes loses the link",
                          World, contract_overload) {
  linked<World> l;
  l.node->open();
  l.master->open(true);
  const auto m = large(1, 1u << 20);
  std::size_t accepted = 0;
  result<void> sent;
  while ((sent = l.node->link().send(m)))
    ++accepted;
  CHECK(sent.error().code == errc::overloaded);
  // Beyond the queue there is only what the peer's credit and the network between hold.
  CHECK(accepted * m.size_bytes() <
        limits::send_queue_max + limits::credit_messages * m.size_bytes() + (64u << 20));
  CHECK(l.world.until([&l] { return l.node->closed(); }));
  CHECK(l.node->reasons().at(0).find("fallen behind") != std::string::npos);
}

TEST_CASE_TEMPLATE_DEFINE("contract: dialling without a listener is answered with 'try again'",
                          World, contract_nobody) {
  linked<World> l;
  const auto where = l.listener->where();
  l.listener.reset();
  const auto answer = dial(l.world, where);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::closed);
  // Links that have been accepted stay.
  l.node->open();
  REQUIRE(l.master->link().send(numbered(1)));
  CHECK(l.world.until([&l] { return l.node->numbers().size() == 1; }));
}

TEST_CASE_TEMPLATE_DEFINE(
    "contract: a busy port is refused by name, and free again when the listener is dropped", World,
    contract_busy) {
  linked<World> l;
  const auto where = l.listener->where();
  accepted_links second;
  const auto refused = l.world.transport().listen(where, second.acceptor());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find(std::to_string(where.port)) != std::string::npos);
  l.listener.reset();
  const auto listening = l.world.transport().listen(where, second.acceptor());
  REQUIRE_MESSAGE(listening.has_value(), listening.error().what);
  REQUIRE(dial(l.world, where, "node-0"));
  CHECK(l.world.until([&second] { return second.names().size() == 1; }));
}

TEST_CASE_TEMPLATE_DEFINE("contract: links do not mix", World, contract_many) {
  linked<World> l;
  std::vector<owner> nodes;
  std::vector<owner> masters;
  for (std::size_t i = 0; i < 20; ++i) {
    auto answer = dial(l.world, l.listener->where());
    REQUIRE(answer);
    nodes.emplace_back(std::move(*answer));
    REQUIRE(l.world.until([&l, i] { return l.accepted.names().size() == i + 2; }));
    masters.emplace_back(l.accepted.link(i));
    nodes.back().open();
    masters.back().open();
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    REQUIRE(nodes[i].link().send(numbered(1'000 + i)));
    REQUIRE(masters[i].link().send(numbered(2'000 + i)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CHECK(l.world.until(
        [&] { return masters[i].numbers().size() == 1 && nodes[i].numbers().size() == 1; }));
    CHECK(masters[i].numbers() == std::vector<std::uint64_t>{1'000 + i});
    CHECK(nodes[i].numbers() == std::vector<std::uint64_t>{2'000 + i});
  }
}

/// Runs the whole contract on one world, or on several; in the global namespace.
#define TROUPE_TRANSPORT_CONTRACT(...)                                                             \
  TEST_CASE_TEMPLATE_INVOKE(contract_hello, __VA_ARGS__);                                          \
  TEST_CASE_TEMPLATE_INVOKE(contract_order, __VA_ARGS__);                                          \
  TEST_CASE_TEMPLATE_INVOKE(contract_large, __VA_ARGS__);                                          \
  TEST_CASE_TEMPLATE_INVOKE(contract_early, __VA_ARGS__);                                          \
  TEST_CASE_TEMPLATE_INVOKE(contract_credit, __VA_ARGS__);                                         \
  TEST_CASE_TEMPLATE_INVOKE(contract_flush, __VA_ARGS__);                                          \
  TEST_CASE_TEMPLATE_INVOKE(contract_drop, __VA_ARGS__);                                           \
  TEST_CASE_TEMPLATE_INVOKE(contract_both_close, __VA_ARGS__);                                     \
  TEST_CASE_TEMPLATE_INVOKE(contract_late_open, __VA_ARGS__);                                      \
  TEST_CASE_TEMPLATE_INVOKE(contract_overload, __VA_ARGS__);                                       \
  TEST_CASE_TEMPLATE_INVOKE(contract_nobody, __VA_ARGS__);                                         \
  TEST_CASE_TEMPLATE_INVOKE(contract_busy, __VA_ARGS__);                                           \
  TEST_CASE_TEMPLATE_INVOKE(contract_many, __VA_ARGS__)
