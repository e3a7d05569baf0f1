#include "tests/journal/journal_contract.hpp"

#include "messages/journal.capnp.h"

#include <doctest/doctest.h>

#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>

namespace troupe::testing {

namespace {

/// Something another thread will say.
template<class T>
class said {
 public:
  void say(T what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
  }
  std::optional<T> heard() const {
    const std::lock_guard lock(mutex_);
    return what_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<T> what_;
};

std::unique_ptr<ports::journal_store> opened(journal_world& world) {
  auto store = world.open();
  REQUIRE(store);
  return std::move(*store);
}

std::vector<std::uint64_t> up_to(std::uint64_t last) {
  std::vector<std::uint64_t> numbers(last);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

void appending_and_reading(journal_world& world) {
  const auto store = opened(world);
  SUBCASE("a new journal is empty") {
    CHECK(read_all(world, *store)->empty());
  }
  SUBCASE("records are counted from 1 and read in the order of appending") {
    for (std::uint64_t number = 1; number <= 5; ++number)
      CHECK(append(world, *store, numbered_record(number)) == number);
    CHECK(numbers_of(*read_all(world, *store)) == up_to(5));
  }
  SUBCASE("a record comes back byte for byte") {
    const auto record = numbered_record(77, 10'000);
    REQUIRE(append(world, *store, record));
    const auto back = read_all(world, *store);
    REQUIRE(back->size() == 1);
    const auto& words = back->front().words();
    REQUIRE(words.size() == record.words().size());
    CHECK(std::memcmp(words.begin(), record.words().begin(), record.size_bytes()) == 0);
    CHECK(back->front().envelope().about == generation{77});
  }
}

void compacting(journal_world& world) {
  const auto odd_ones = [](std::vector<messages::any_msg> records) {
    std::vector<messages::any_msg> kept;
    for (auto& record : records)
      if (record.envelope().sequence % 2 == 1)
        kept.push_back(std::move(record));
    return kept;
  };
  {
    const auto store = opened(world);
    for (std::uint64_t number = 1; number <= 5; ++number)
      REQUIRE(append(world, *store, numbered_record(number)));
    const auto answer = std::make_shared<said<result<void>>>();
    store->compact(odd_ones, [answer](result<void> outcome) { answer->say(std::move(outcome)); });
    REQUIRE(world.until([answer] { return answer->heard().has_value(); }));
    CHECK(*answer->heard());
    CHECK(numbers_of(*read_all(world, *store)) == std::vector<std::uint64_t>{1, 3, 5});
    CHECK(append(world, *store, numbered_record(6)) == 6u);
  }
  CHECK(numbers_of(*read_all(world, *opened(world))) == std::vector<std::uint64_t>{1, 3, 5, 6});
}

void order_of_answers(journal_world& world) {
  const auto store = opened(world);
  constexpr std::uint64_t count = 300;
  std::mutex mutex;
  std::vector<std::string> answers;
  const auto note = [&mutex, &answers](std::string what) {
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(what));
  };
  std::vector<std::string> expected;
  for (std::uint64_t number = 1; number <= count; ++number) {
    store->append(numbered_record(number), [&note](const result<std::uint64_t>& index) {
      note(index ? "record " + std::to_string(*index) : index.error().what);
    });
    expected.push_back("record " + std::to_string(number));
    if (number % 100 == 0) {
      store->read_all([&note](const result<std::vector<messages::any_msg>>& all) {
        note(all ? "all " + std::to_string(all->size()) : all.error().what);
      });
      expected.push_back("all " + std::to_string(number));
    }
  }
  REQUIRE(world.until([&mutex, &answers, &expected] {
    const std::lock_guard lock(mutex);
    return answers.size() == expected.size();
  }));
  CHECK(answers == expected);
}

void opening_again(journal_world& world) {
  SUBCASE("what was appended is there after the store was closed, and counting goes on") {
    {
      const auto store = opened(world);
      REQUIRE(append(world, *store, numbered_record(1)));
      REQUIRE(append(world, *store, numbered_record(2)));
    }
    const auto again = opened(world);
    CHECK(append(world, *again, numbered_record(3)) == 3u);
    CHECK(numbers_of(*read_all(world, *again)) == up_to(3));
  }
  SUBCASE("what was queued when the store went is written") {
    {
      const auto store = opened(world);
      for (std::uint64_t number = 1; number <= 50; ++number)
        store->append(numbered_record(number), [](const result<std::uint64_t>&) {});
    }
    CHECK(numbers_of(*read_all(world, *opened(world))) == up_to(50));
  }
  SUBCASE("each time it is opened the master is a newer one") {
    const auto first = opened(world)->opened_as();
    const auto second = opened(world)->opened_as();
    CHECK(term{} < first);
    CHECK(first < second);
  }
  SUBCASE("a later master knows that it is not the first") {
    CHECK_FALSE(opened(world)->taken_up());
    CHECK(opened(world)->taken_up());
  }
  SUBCASE("two masters cannot have it at once") {
    const auto first = opened(world);
    const auto second = world.open();
    if (world.newest_takes_it()) {
      REQUIRE(second);
      CHECK(append(world, **second, numbered_record(1)) == 1u);
      CHECK(append(world, *first, numbered_record(2)).error().code == errc::refused);
      CHECK(read_all(world, *first).error().code == errc::refused);
      CHECK(numbers_of(*read_all(world, **second)) == up_to(1));
      return;
    }
    REQUIRE_FALSE(second);
    CHECK(second.error().code == errc::refused);
    CHECK(second.error().what.find("another master is using it") != std::string::npos);
    CHECK(append(world, *first, numbered_record(1)) == 1u);
  }
}

} // namespace

messages::any_msg numbered_record(std::uint64_t number, std::size_t padding) {
  const messages::stamp envelope{"master/journal", term{1}, generation{number}, number, 0};
  return messages::build<messages::Concluded>(
             envelope, [padding](auto body) { body.setReason(std::string(padding, 'x')); })
      .any();
}

std::vector<std::uint64_t> numbers_of(const std::vector<messages::any_msg>& records) {
  std::vector<std::uint64_t> numbers;
  for (const auto& record : records)
    numbers.push_back(record.envelope().sequence);
  return numbers;
}

result<std::uint64_t> append(journal_world& world, ports::journal_store& store,
                             messages::any_msg record) {
  // Shared, because the store may answer after a failed test has left.
  const auto answer = std::make_shared<said<result<std::uint64_t>>>();
  store.append(std::move(record),
               [answer](result<std::uint64_t> index) { answer->say(std::move(index)); });
  REQUIRE(world.until([answer] { return answer->heard().has_value(); }));
  return *answer->heard();
}

result<std::vector<messages::any_msg>> read_all(journal_world& world, ports::journal_store& store) {
  const auto answer = std::make_shared<said<result<std::vector<messages::any_msg>>>>();
  store.read_all(
      [answer](result<std::vector<messages::any_msg>> all) { answer->say(std::move(all)); });
  REQUIRE(world.until([answer] { return answer->heard().has_value(); }));
  return *answer->heard();
}

void check_journal_contract(const journal_world_maker& make) {
  const auto world = make();
  SUBCASE("appending and reading") {
    appending_and_reading(*world);
  }
  SUBCASE("answers come in the order of the calls") {
    order_of_answers(*world);
  }
  SUBCASE("compacting") {
    compacting(*world);
  }
  SUBCASE("opening again") {
    opening_again(*world);
  }
}

} // namespace troupe::testing
