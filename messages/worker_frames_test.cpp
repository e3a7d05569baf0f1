#include "messages/worker_frames.hpp"

#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/msg.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

using namespace troupe;
using namespace troupe::messages;

namespace {

any_msg admitted(const packet& from) {
  REQUIRE(from.size() <= limits::worker_packet_max);
  auto seen = admit(from.data(), from.size());
  REQUIRE(seen);
  return *seen;
}

} // namespace

TEST_CASE("a supervisor admits what a process says") {
  worker_frames frames(3, 7);
  worker_hello self;
  self.rank = 3;
  self.local_rank = 1;
  self.generation = 7;
  self.torch = "2.13.0";
  self.first_step_ns = 99;
  const auto hello = admitted(frames.said(self));
  REQUIRE(hello.is<WorkerHello>());
  CHECK(hello.envelope().sender == "worker/3");
  CHECK(hello.envelope().about == generation{7});
  auto read = hello.as<WorkerHello>().read();
  CHECK(read->getLocalRank() == 1);
  CHECK(read->getTorch() == "2.13.0");
  CHECK(read->getFirstStepNs() == 99);
  const auto step = admitted(frames.first_step(5, 2));
  CHECK(step.as<FirstStep>().read()->getAtNs() == 5);
  CHECK(step.as<FirstStep>().read()->getSinceFailureNs() == 2);
  CHECK(step.envelope().sequence == 2);
}

TEST_CASE("a flight record comes in pieces that make it whole") {
  worker_frames frames(0, 1);
  std::string whole;
  while (whole.size() < 3 * limits::flight_record_piece)
    whole += std::to_string(whole.size());
  std::string got;
  for (std::size_t at = 0; at < whole.size(); at += limits::flight_record_piece) {
    const auto piece = admitted(frames.flight_record(12, whole, at));
    CHECK(piece.envelope().correlation == 12);
    auto read = piece.as<FlightRecord>().read();
    REQUIRE(read->isPiece());
    CHECK(read->getAt() == got.size());
    CHECK(read->getBytes() == whole.size());
    got.append(reinterpret_cast<const char*>(read->getPiece().begin()), read->getPiece().size());
  }
  CHECK(got == whole);
  const auto none = admitted(frames.no_flight_record(13, std::string(1 << 20, 'x')));
  CHECK(none.as<FlightRecord>().read()->getWhy().size() == limits::failure_line_max);
}

TEST_CASE("a fatal signal is made beforehand, and numbers are put in") {
  worker_frames frames(123'456, 9);
  auto frame = frames.fatal_signal();
  const std::int32_t signal = 11, thread = 70'123;
  std::memcpy(frame.bytes.data() + frame.signal_at, &signal, sizeof signal);
  std::memcpy(frame.bytes.data() + frame.thread_at, &thread, sizeof thread);
  const auto said = admitted(frame.bytes);
  REQUIRE(said.is<FatalSignal>());
  CHECK(said.envelope().sender == "worker/123456");
  CHECK(said.envelope().correlation == 1);
  CHECK(said.as<FatalSignal>().read()->getSignal() == signal);
  CHECK(said.as<FatalSignal>().read()->getThread() == thread);
}

TEST_CASE("a request is known by its kind, and no other bytes are one") {
  const auto request =
      build<FlightRecordRequest>(stamp{"node", {}, generation{1}, 1, 44}, [](auto) {});
  const auto bytes = request.any().words().asBytes();
  CHECK(heard(bytes.begin(), bytes.size()).flight_record == 44);
  CHECK_FALSE(heard(bytes.begin(), bytes.size()).is_go_on);
  const auto other = author("node").write<FirstStep>(generation{1}, [](auto) {}).any();
  const auto none = heard(other.words().asBytes().begin(), other.size_bytes());
  CHECK_FALSE(none.flight_record);
  CHECK_FALSE(none.is_go_on);
  CHECK_FALSE(heard(nullptr, 0).flight_record);
  const auto go_on = author("node").write<GoOn>(generation{1}, [](auto) {}).any();
  CHECK(heard(go_on.words().asBytes().begin(), go_on.size_bytes()).is_go_on);
  CHECK_FALSE(heard(go_on.words().asBytes().begin(), go_on.size_bytes()).flight_record);
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string broken(bytes.begin(), bytes.end());
    for (int i = 0; i < 4; ++i)
      broken[random() % broken.size()] = static_cast<char>(random());
    broken.resize(broken.size() - random() % 9);
    (void)heard(broken.data(), broken.size());
  }
}
