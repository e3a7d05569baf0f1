#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/link/frame.hpp"

#include <string>
#include <vector>

/// Messages for the tests of links, and how to tell them apart again.
namespace troupe::testing {

inline messages::msg<messages::Hello> hello(const std::string& node = "node-0") {
  return messages::build<messages::Hello>({node + "/uplink"},
                                          [&node](messages::Hello::Builder out) {
                                            out.setJob("job");
                                            out.setNode(node);
                                            out.setIncarnation(7);
                                            out.setSlots(1);
                                          });
}

/// A small message that carries a number.
inline messages::any_msg numbered(std::uint64_t number, const std::string& text = "") {
  messages::stamp envelope;
  envelope.sender = "test";
  envelope.sequence = number;
  return messages::build<messages::Goodbye>(
             envelope, [&text](messages::Goodbye::Builder out) { out.setReason(text); })
      .any();
}

inline std::uint64_t number_of(const messages::any_msg& m) {
  return m.envelope().sequence;
}

/// A message of at least `size` bytes.
inline messages::any_msg large(std::uint64_t number, std::size_t size) {
  messages::stamp envelope;
  envelope.sender = "test";
  envelope.sequence = number;
  const std::string filler(8'000, 'x');
  return messages::build<messages::Failed>(envelope,
                                           [&](messages::Failed::Builder out) {
                                             auto list = out.initFailures(
                                                 static_cast<unsigned>(size / filler.size() + 1));
                                             for (auto failure : list)
                                               failure.setMessage(filler);
                                           })
      .any();
}

/// What a peer would send, with numbers of the caller's choice.
inline std::vector<kj::byte> on_wire(std::uint64_t sequence, const messages::any_msg& m) {
  std::vector<kj::byte> raw;
  link::append(raw, link::make_frame(sequence, m));
  return raw;
}

inline std::vector<kj::byte> beat_on_wire(std::uint64_t sequence) {
  std::vector<kj::byte> raw;
  link::append(raw, link::make_beat(sequence));
  return raw;
}

inline link::bytes view_of(const std::vector<kj::byte>& raw) {
  return {raw.data(), raw.size()};
}

} // namespace troupe::testing
