#include "runtime/os/kube/config_map_journal.hpp"

#include "messages/journal.capnp.h"
#include "tests/journal/journal_contract.hpp"
#include "tests/kube/simulated_config_maps.hpp"

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace std::chrono_literals;
using testing::append;
using testing::numbered_record;
using testing::numbers_of;
using testing::read_all;

namespace {

/// A simulated server that answers on the thread of each store.
class config_map_world final : public testing::journal_world {
 public:
  result<std::unique_ptr<ports::journal_store>> open() override {
    auto store = open_for(owner);
    if (!store)
      return tl::make_unexpected(store.error());
    return std::move(*store);
  }

  result<std::unique_ptr<os::config_map_journal>> open_for(const os::journal_owner& mine) {
    os::config_map_journal::options o;
    o.name_space = "jobs";
    o.name = "words";
    o.host = "master-0";
    o.number = ++openings;
    return os::config_map_journal::open([this](os::io_thread& io) { return calls_on(io); }, o, mine,
                                        [this](const std::string&, const log::event& event) {
                                          const std::lock_guard lock(mutex);
                                          told.push_back(event.name);
                                        });
  }

  bool until(const std::function<bool()>& holds) override {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
    return holds();
  }
  bool newest_takes_it() const override { return true; }

  os::journal_owner owner{"job", std::nullopt};
  std::mutex mutex; ///< of the server and of what was told
  testing::simulated_config_maps server;
  std::vector<std::string> told;
  std::uint64_t openings = 0;
  std::atomic<bool> away{false};

 private:
  result<os::config_map_journal::caller> calls_on(os::io_thread& io) {
    return os::config_map_journal::caller(
        [this, &io](const kube::api_request& what, auto answered) {
          boost::asio::post(io.context(), [this, what, answered = std::move(answered)] {
            std::unique_lock lock(mutex);
            const auto answer =
                away ? kube::api_answer{0, "connection refused", {}} : server.answer(what);
            lock.unlock();
            answered(answer);
          });
        });
  }
};

void conclude(config_map_world& world) {
  const auto store = world.open_for(world.owner);
  REQUIRE(append(world, **store, numbered_record(1)));
  const messages::stamp envelope{"master", term{1}, generation{1}, 2, 0};
  REQUIRE(append(world, **store,
                 messages::build<messages::FarewellEnded>(envelope, [](auto) {}).any()));
}

messages::any_msg sealed_with(const std::vector<const char*>& nodes) {
  return messages::build<messages::GenerationSealed>({"master", term{1}, generation{1}, 2, 0},
                                                     [&](messages::GenerationSealed::Builder b) {
                                                       auto members = b.initWorld().initMembers(
                                                           static_cast<unsigned>(nodes.size()));
                                                       for (unsigned n = 0; n < nodes.size(); ++n)
                                                         members[n].setNode(nodes[n]);
                                                     })
      .any();
}

} // namespace

TEST_CASE("the journal in a ConfigMap keeps the promises of a journal") {
  testing::check_journal_contract([] { return std::make_unique<config_map_world>(); });
}

TEST_CASE("a late master of a deleted ElasticJob leaves the next one's journal alone") {
  config_map_world world;
  const os::journal_owner first{"job", std::nullopt, "u1"}, second{"job", std::nullopt, "u2"};
  { REQUIRE(append(world, **world.open_for(first), numbered_record(1))); }
  // As the operator applies it for the job of today.
  boost::json::value owner = {{"kind", "ElasticJob"}, {"uid", "u2"}, {"controller", true}};
  world.server.objects.at("words").at("metadata").as_object()["ownerReferences"] =
      boost::json::array{owner};
  const auto before = world.server.objects.at("words");
  const auto late = world.open_for(first);
  REQUIRE_FALSE(late);
  CHECK(late.error().what.find("journal 'configmap:words': the ElasticJob was deleted, and another "
                               "has its name and this journal") == 0);
  CHECK(world.server.objects.at("words") == before);
  const auto today = world.open_for(second);
  REQUIRE(today);
  CHECK_FALSE((*today)->taken_up());
  CHECK(numbers_of(*read_all(world, **today)).empty());
}

TEST_CASE("another job's journal is refused and not changed") {
  config_map_world world;
  { REQUIRE(append(world, **world.open(), numbered_record(1))); }
  const auto before = world.server.objects.at("words");
  const auto other = world.open_for({"other", std::nullopt});
  REQUIRE_FALSE(other);
  CHECK(other.error().code == errc::refused);
  CHECK(other.error().what.find("journal 'configmap:words': it belongs to job 'job', and this is "
                                "job 'other'") == 0);
  CHECK(world.server.objects.at("words") == before);
}

TEST_CASE("a new run begins anew where the last one has ended, and says so") {
  config_map_world world;
  conclude(world);
  const auto next = world.open_for(world.owner);
  REQUIRE(next);
  CHECK_FALSE((*next)->taken_up());
  REQUIRE((*next)->notices().size() == 1);
  CHECK((*next)->notices()[0].name == "journal_begun_anew");
  CHECK(read_all(world, **next)->empty());
}

TEST_CASE("while the API server is away records wait, and the user is told once") {
  config_map_world world;
  const auto store = world.open();
  world.away = true;
  std::atomic<int> written{0};
  for (std::uint64_t number = 1; number <= 3; ++number)
    (*store)->append(numbered_record(number),
                     [&](const result<std::uint64_t>& index) { written += index ? 1 : 100; });
  REQUIRE(world.until([&] {
    const std::lock_guard lock(world.mutex);
    return !world.told.empty();
  }));
  CHECK(written == 0);
  world.away = false;
  REQUIRE(world.until([&] { return written == 3; }));
  CHECK(numbers_of(*read_all(world, **store)) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(world.told == std::vector<std::string>{"config_map_waits", "config_map_goes_on"});
}

TEST_CASE("without the API server the same nodes start again, and other nodes wait for it") {
  config_map_world world;
  { REQUIRE(append(world, **world.open(), sealed_with({"a", "b"}))); }
  const auto store = world.open();
  world.away = true;
  const auto restart = messages::build<messages::GenerationProposed>(
      {"master", term{2}, generation{2}, 2, 0}, [](auto) {});
  CHECK(append(world, **store, restart.any()) == 2u);
  CHECK(append(world, **store, sealed_with({"b", "a"})) == 3u);
  std::atomic<int> other{0};
  for (const auto& record : {sealed_with({"b"}), restart.any()})
    (*store)->append(record, [&](const result<std::uint64_t>& index) { other += index ? 1 : 100; });
  std::this_thread::sleep_for(100ms);
  CHECK(other == 0);
  world.away = false;
  REQUIRE(world.until([&] { return other == 2; }));
  CHECK(read_all(world, **store)->size() == 5);
}

TEST_CASE("what cannot be written before the end is answered all the same") {
  config_map_world world;
  auto store = world.open();
  world.away = true;
  std::atomic<bool> closed{false};
  (*store)->append(numbered_record(1), [&](const result<std::uint64_t>& index) {
    closed = !index && index.error().code == errc::closed;
  });
  store->reset();
  CHECK(closed);
}
