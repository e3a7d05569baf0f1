#include "messages/text.hpp"

#include "messages/kinds.hpp"

#include <capnp/any.h>
#include <capnp/dynamic.h>
#include <capnp/serialize-text.h>
#include <fmt/format.h>
#include <kj/exception.h>

#include <vector>

namespace troupe::messages {

namespace {

std::string envelope_text(const stamp& e) {
  std::vector<std::string> set;
  if (e.about.value)
    set.push_back(fmt::format("generation = {}", e.about.value));
  if (e.follows.value > 1)
    set.push_back(fmt::format("term = {}", e.follows.value));
  if (e.correlation)
    set.push_back(fmt::format("correlation = {}", e.correlation));
  return fmt::format("({})", fmt::join(set, ", "));
}

} // namespace

std::string to_text(const any_msg& m) {
  const auto schema = schema_of(m.kind());
  if (!schema)
    return kind_name(m.kind());
  capnp::FlatArrayMessageReader reader(m.words(), detail::reader_options());
  auto body = reader.getRoot<Envelope>().getBody().getAs<capnp::DynamicStruct>(*schema);
  capnp::TextCodec codec;
  return fmt::format("{}{} {}", kind_name(m.kind()), envelope_text(m.envelope()),
                     codec.encode(body).cStr());
}

result<any_msg> from_text(const std::string& kind, const std::string& body, const stamp& envelope) {
  const auto number = kind_named(kind);
  if (!number)
    return failure(errc::invalid, fmt::format("there is no message kind '{}'", kind));
  try {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<Envelope>();
    detail::write_envelope(root, envelope, *number);
    capnp::TextCodec codec;
    codec.decode(kj::StringPtr(body.c_str(), body.size()),
                 root.getBody().initAs<capnp::DynamicStruct>(*schema_of(*number)));
    return any_msg(detail::seal(builder, envelope, *number));
  } catch (const kj::Exception& e) {
    return failure(errc::invalid, fmt::format("{}: {}", kind, e.getDescription().cStr()));
  }
}

} // namespace troupe::messages
