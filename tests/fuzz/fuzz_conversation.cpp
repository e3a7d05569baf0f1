// One target per conversation, all from this source: each is called fuzz_ and the name of its
// schema. Any bytes are refused at the border, or they are a message that can be read in full, and
// whose text leads back to it.
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "messages/testing/samples.hpp"
#include "messages/text.hpp"

#include <capnp/dynamic.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace troupe;

namespace {

std::string schema_file() {
  const std::string program = program_invocation_short_name;
  return "/" + program.substr(program.find('_') + 1) + ".capnp:";
}

bool belongs_here(std::uint64_t kind) {
  static const std::string file = schema_file();
  const auto schema = messages::schema_of(kind);
  if (!schema)
    return false;
  const std::string place = schema->getProto().getDisplayName();
  return place.find(file) != std::string::npos;
}

bool has_unknown_enumerant(capnp::DynamicValue::Reader value) {
  switch (value.getType()) {
  case capnp::DynamicValue::ENUM:
    return value.as<capnp::DynamicEnum>().getEnumerant() == nullptr;
  case capnp::DynamicValue::LIST:
    for (auto element : value.as<capnp::DynamicList>())
      if (has_unknown_enumerant(element))
        return true;
    return false;
  case capnp::DynamicValue::STRUCT: {
    const auto fields = value.as<capnp::DynamicStruct>();
    for (auto field : fields.getSchema().getNonUnionFields())
      if (has_unknown_enumerant(fields.get(field)))
        return true;
    KJ_IF_MAYBE (member, fields.which())
      return has_unknown_enumerant(fields.get(*member));
    return false;
  }
  default:
    return false;
  }
}

/// A newer peer's enumerants have no name here, so that their text cannot be read back.
bool has_words_for_all(const messages::any_msg& m) {
  capnp::FlatArrayMessageReader reader(m.words(), messages::detail::reader_options());
  const auto body = reader.getRoot<messages::Envelope>().getBody();
  return !has_unknown_enumerant(body.getAs<capnp::DynamicStruct>(*messages::schema_of(m.kind())));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto m = messages::admit(bytes, size);
  if (!m || !belongs_here(m->kind()))
    return 0;
  messages::testing::read_everything(*m);
  const auto text = messages::to_text(*m);
  if (!has_words_for_all(*m))
    return 0;
  const auto body = text.substr(text.find(") ") + 2);
  const auto again = messages::from_text(messages::kind_name(m->kind()), body, m->envelope());
  if (!again || messages::to_text(*again) != text)
    std::abort();
  return 0;
}
