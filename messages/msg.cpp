#include "messages/msg.hpp"

#include "messages/kinds.hpp"
#include "messages/limits.hpp"

#include <capnp/any.h>
#include <capnp/dynamic.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include <cstring>
#include <limits>

namespace troupe::messages {

namespace detail {

capnp::ReaderOptions reader_options() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = std::numeric_limits<std::uint64_t>::max();
  options.nestingLimit = static_cast<int>(limits::nesting_max);
  return options;
}

void write_envelope(Envelope::Builder out, const stamp& envelope, std::uint64_t kind) {
  out.setVersion(protocol_version);
  out.setSender(envelope.sender);
  out.setTerm(envelope.follows.value);
  out.setGeneration(envelope.about.value);
  out.setSequence(envelope.sequence);
  out.setCorrelation(envelope.correlation);
  out.setKind(kind);
}

sealed_ptr seal(capnp::MessageBuilder& builder, const stamp& envelope, std::uint64_t kind) {
  auto whole = std::make_shared<sealed>();
  whole->words = capnp::messageToFlatArray(builder);
  whole->envelope = envelope;
  whole->kind = kind;
  invariant(whole->words.size() * sizeof(capnp::word) <= limits::frame_max,
            "a message of ours exceeds frame_max");
  return whole;
}

} // namespace detail

namespace {

/// Bounds what a message comes to when it is read: parts may be shared, so that it reads larger
/// than it is.
capnp::ReaderOptions border_options(std::size_t word_count) {
  auto options = detail::reader_options();
  options.traversalLimitInWords = word_count * limits::traversal_factor + 1024;
  return options;
}

/// Touches every pointer of a struct as its schema declares it, so that no later read can meet a
/// surprise. Throws kj::Exception on a mismatch and invariant-free otherwise.
class schema_walk {
 public:
  void walk(capnp::DynamicStruct::Reader value) {
    for (auto field : value.getSchema().getFields())
      if (value.has(field))
        visit(value.get(field));
  }

  const char* violation() const { return violation_; }

 private:
  void visit(const capnp::DynamicValue::Reader& value) {
    switch (value.getType()) {
    case capnp::DynamicValue::STRUCT:
      walk(value.as<capnp::DynamicStruct>());
      break;
    case capnp::DynamicValue::LIST:
      walk_list(value.as<capnp::DynamicList>());
      break;
    case capnp::DynamicValue::TEXT:
      if (value.as<capnp::Text>().size() > limits::text_max)
        violation_ = "a text is too long";
      break;
    default:
      break;
    }
  }

  void walk_list(capnp::DynamicList::Reader list) {
    const auto element = list.getSchema().whichElementType();
    const bool holds_pointers =
        element == capnp::schema::Type::STRUCT || element == capnp::schema::Type::LIST ||
        element == capnp::schema::Type::TEXT || element == capnp::schema::Type::DATA;
    if (!holds_pointers)
      return;
    for (auto value : list)
      visit(value);
  }

  const char* violation_ = nullptr;
};

result<any_msg> check(kj::Array<capnp::word> words) {
  capnp::FlatArrayMessageReader reader(words.asPtr(), border_options(words.size()));
  auto root = reader.getRoot<Envelope>();
  if (root.getVersion() != protocol_version)
    return failure(errc::refused, fmt::format("protocol version {} instead of {}",
                                              root.getVersion(), protocol_version));
  if (root.getSender().size() > limits::name_max)
    return failure(errc::invalid, "the sender's name is too long");
  // The walk below sees only what the schema knows; this one sees everything, also what a newer
  // schema added.
  const auto copied = reader.getRoot<capnp::AnyPointer>().targetSize();
  if (copied.wordCount + detail::envelope_words > limits::frame_max / sizeof(capnp::word))
    return failure(errc::invalid,
                   "the message is longer than a frame may be, once its shared parts are copied");
  if (copied.capCount != 0)
    return failure(errc::invalid, "the message holds a capability");
  const auto kind = root.getKind();
  if (const auto schema = schema_of(kind)) {
    schema_walk walk;
    walk.walk(root.getBody().getAs<capnp::DynamicStruct>(*schema));
    if (walk.violation())
      return failure(errc::invalid, fmt::format("{}: {}", kind_name(kind), walk.violation()));
  }
  auto whole = std::make_shared<detail::sealed>();
  whole->envelope =
      stamp{root.getSender().cStr(), term{root.getTerm()}, generation{root.getGeneration()},
            root.getSequence(), root.getCorrelation()};
  whole->kind = kind;
  whole->words = kj::mv(words);
  return any_msg(std::move(whole));
}

} // namespace

result<any_msg> admit(kj::Array<capnp::word> words) {
  if (words.size() * sizeof(capnp::word) > limits::frame_max)
    return failure(errc::invalid, "the message is longer than a frame may be");
  try {
    return check(kj::mv(words));
  } catch (const kj::Exception& e) {
    return failure(errc::invalid, fmt::format("malformed message: {}", e.getDescription().cStr()));
  }
}

result<any_msg> admit(const void* bytes, std::size_t size) {
  if (size == 0 || size % sizeof(capnp::word) != 0)
    return failure(errc::invalid, fmt::format("{} bytes are not a whole number of words", size));
  if (size > limits::frame_max)
    return failure(errc::invalid, "the message is longer than a frame may be");
  auto words = kj::heapArray<capnp::word>(size / sizeof(capnp::word));
  std::memcpy(words.begin(), bytes, size);
  return admit(kj::mv(words));
}

} // namespace troupe::messages
