#include "tests/actors/node_stage.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A node whose processes of generation 1 run.
struct node_with_channel : node_stage {
  node_with_channel() {
    begin();
    runs();
  }

  ports::worker_link arrives(std::int32_t pid) {
    const auto which = channel->arrives(pid, pid);
    settle();
    return which;
  }
  static std::int32_t pid_of(std::int32_t nth) { return 1'001 + nth; }
  void hello(ports::worker_link from) {
    channel->says(
        from,
        process.write<messages::WorkerHello>(generation{1}, [](auto b) { b.setGeneration(1); })
            .any());
    settle();
  }
  void steps(ports::worker_link from) {
    const auto now = std::chrono::nanoseconds(engine.now().time_since_epoch()).count();
    channel->says(
        from, process
                  .write<messages::FirstStep>(
                      generation{1}, [now](auto b) { b.setAtNs(static_cast<std::uint64_t>(now)); })
                  .any());
    settle();
  }
  /// Both ranks are there: in which order they were started is not decided.
  std::vector<ports::worker_link> both_talk() {
    std::vector<ports::worker_link> links{arrives(pid_of(0)), arrives(pid_of(1))};
    for (const auto each : links)
      hello(each);
    return links;
  }

  messages::author process{"process"};
};

} // namespace

TEST_SUITE("node: its training processes on the channel") {
  TEST_CASE("the first step is told at the node of rank 0") {
    node_with_channel s;
    const auto links = s.both_talk();
    s.pass(2s);
    for (const auto each : links)
      s.steps(each);
    CHECK(
        s.was_said("worker_channel: the first step was made 2.0 s after the workers were started"));
  }

  TEST_CASE("a process that is none of its own is turned away") {
    node_with_channel s;
    const auto link = s.arrives(1);
    CHECK_FALSE(s.channel->is_open(link));
    CHECK(s.was_said("process 1 is turned away"));
    CHECK(s.channel->is_open(s.arrives(s.pid_of(0))));
  }

  TEST_CASE("after a crash of the actor the processes dial again, and it knows them") {
    node_with_channel s;
    s.both_talk();
    s.crash(s.at.worker_channel);
    s.pass(1s);
    const auto links = s.both_talk();
    CHECK(s.channel->is_open(links[0]));
    CHECK(s.channel->is_open(links[1]));
    s.pass(1min);
    CHECK(s.channel->is_open(links[0]));
    for (const auto each : links)
      s.steps(each);
    CHECK(s.was_said("worker_channel: the first step was made"));
  }

  TEST_CASE("stacks that the master wants come with the records of the processes") {
    node_with_channel s;
    const auto links = s.both_talk();
    s.says(messages::author("master/diagnosis")
               .write<messages::StacksWanted>(generation{1},
                                              [](auto b) {
                                                b.setDump(3);
                                                b.setWithinMs(1'000);
                                              })
               .any());
    const auto asked = s.channel->take_sent();
    REQUIRE(asked.size() == 2);
    for (const auto& [link, question] : asked) {
      REQUIRE(question.is<messages::FlightRecordRequest>());
      s.channel->says(link, s.process
                                .answer<messages::FlightRecord>(
                                    question.envelope(),
                                    [](auto b) {
                                      b.setPiece({reinterpret_cast<const kj::byte*>("{}"), 2});
                                      b.setBytes(2);
                                    })
                                .any());
    }
    s.settle();
    CHECK(s.channel->records.size() == 2);
    CHECK(s.was_said("the records of the last collectives are at /run/stacks/3"));
  }

  TEST_CASE("a process that a fatal signal has hit hears that it may go on") {
    node_with_channel s;
    const auto links = s.both_talk();
    s.channel->take_sent();
    s.channel->says(
        links[1],
        s.process.write<messages::FatalSignal>(generation{1}, [](auto b) { b.setSignal(SIGBUS); })
            .any());
    s.settle();
    const auto answers = s.channel->take_sent();
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].first == links[1]);
    CHECK(answers[0].second.is<messages::GoOn>());
    CHECK(s.was_said("was hit by SIGBUS"));
  }
}
