#include "messages/worker_frames.hpp"

#include "messages/envelope.capnp.h"
#include "messages/limits.hpp"
#include "messages/worker.capnp.h"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::messages {

namespace {

/// Of msg.hpp, which is more than a training process needs; the tests hold them equal.
constexpr std::uint16_t version_said = 1;

} // namespace

worker_frames::worker_frames(std::uint32_t rank, std::uint64_t generation)
    : sender_("worker/" + std::to_string(rank)), generation_(generation) {}

template<class T, class Fill>
packet worker_frames::write(std::uint64_t correlation, Fill&& fill) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<Envelope>();
  root.setVersion(version_said);
  root.setSender(sender_);
  root.setGeneration(generation_);
  root.setSequence(++sequence_);
  root.setCorrelation(correlation);
  root.setKind(capnp::typeId<T>());
  fill(root.getBody().template initAs<T>());
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

packet worker_frames::said(const worker_hello& what) {
  return write<WorkerHello>(0, [&](WorkerHello::Builder to) {
    to.setRank(what.rank);
    to.setLocalRank(what.local_rank);
    to.setPid(what.pid);
    to.setGeneration(what.generation);
    to.setVersion(what.version);
    to.setFeeds(what.feeds);
    to.setPython(what.python);
    to.setTorch(what.torch);
    to.setStacksSignal(what.stacks_signal);
    to.setFirstStepNs(what.first_step_ns);
  });
}

packet worker_frames::first_step(std::uint64_t at_ns, std::uint64_t since_failure_ns) {
  return write<FirstStep>(0, [&](FirstStep::Builder to) {
    to.setAtNs(at_ns);
    to.setSinceFailureNs(since_failure_ns);
  });
}

packet worker_frames::flight_record(std::uint64_t correlation, std::string_view whole,
                                    std::size_t at) {
  return write<FlightRecord>(correlation, [&](FlightRecord::Builder to) {
    const auto piece = whole.substr(at, limits::flight_record_piece);
    to.setPiece({reinterpret_cast<const kj::byte*>(piece.data()), piece.size()});
    to.setBytes(whole.size());
    to.setAt(at);
  });
}

packet worker_frames::no_flight_record(std::uint64_t correlation, std::string_view why) {
  return write<FlightRecord>(correlation, [&](FlightRecord::Builder to) {
    to.setWhy(std::string(why.substr(0, limits::failure_line_max)));
  });
}

/// Where the two are is asked of the message itself: an envelope's size depends on its sender.
fatal_signal_frame worker_frames::fatal_signal() {
  fatal_signal_frame made;
  made.bytes = write<FatalSignal>(1, [](FatalSignal::Builder) {});
  std::vector<capnp::word> words(made.bytes.size() / sizeof(capnp::word));
  std::memcpy(words.data(), made.bytes.data(), made.bytes.size());
  capnp::FlatArrayMessageReader reader({words.data(), words.size()});
  const capnp::AnyStruct::Reader body =
      reader.getRoot<Envelope>().getBody().getAs<capnp::AnyStruct>();
  const auto data = body.getDataSection();
  const auto begin =
      static_cast<std::size_t>(data.begin() - reinterpret_cast<const kj::byte*>(words.data()));
  static_assert(sizeof(std::int32_t) == 4);
  made.signal_at = begin;
  made.thread_at = begin + sizeof(std::int32_t);
  return made;
}

heard_request heard(const void* bytes, std::size_t size) {
  heard_request what;
  if (size == 0 || size > limits::worker_packet_max || size % sizeof(capnp::word) != 0)
    return what;
  try {
    auto words = kj::heapArray<capnp::word>(size / sizeof(capnp::word));
    std::memcpy(words.begin(), bytes, size);
    capnp::FlatArrayMessageReader reader(words.asPtr());
    const auto root = reader.getRoot<Envelope>();
    if (root.getVersion() != version_said)
      return what;
    what.is_go_on = root.getKind() == capnp::typeId<GoOn>();
    if (root.getKind() == capnp::typeId<FlightRecordRequest>())
      what.flight_record = root.getCorrelation();
    return what;
  } catch (const kj::Exception&) {
    return {};
  }
}

} // namespace troupe::messages
