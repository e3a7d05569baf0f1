#include "messages/testing/samples.hpp"

#include "messages/kinds.hpp"

#include <capnp/any.h>
#include <capnp/dynamic.h>

#include <limits>
#include <string>

namespace troupe::messages::testing {

namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::schema::Type;

/// TreeNode contains itself; deeper than this, lists stay empty.
constexpr int depth_max = 6;

template<class... Kinds>
std::vector<std::uint64_t> numbers(kind_list<Kinds...>) {
  return {capnp::typeId<Kinds>()...};
}

std::string some_text(random_source& chance) {
  static const std::vector<std::string> texts = {"", "n1",
                                                 "a longer text with \"quotes\", \\ and\nlines",
                                                 "größer als 日本 🙂", "\x01\x7f"};
  return texts[chance.below(texts.size())];
}

/// The ends of a type's range, and what is between.
template<class Number>
Number some_number(random_source& chance) {
  switch (chance.below(4)) {
  case 0:
    return std::numeric_limits<Number>::min();
  case 1:
    return std::numeric_limits<Number>::max();
  default:
    return static_cast<Number>(chance.next());
  }
}

/// One value of a type that is neither a struct nor a list.
capnp::DynamicValue::Reader some_value(capnp::Type type, random_source& chance,
                                       std::string& storage) {
  switch (type.which()) {
  case Type::BOOL:
    return chance.chance(0.5);
  case Type::INT32:
    return some_number<std::int32_t>(chance);
  case Type::INT64:
    return some_number<std::int64_t>(chance);
  case Type::UINT8:
    return some_number<std::uint8_t>(chance);
  case Type::UINT16:
    return some_number<std::uint16_t>(chance);
  case Type::UINT32:
    return some_number<std::uint32_t>(chance);
  case Type::UINT64:
    return some_number<std::uint64_t>(chance);
  case Type::FLOAT64:
    // Times and rates; nothing that is not a number, which is equal to nothing, itself included.
    return static_cast<double>(chance.below(1'000'000)) / 1'000;
  case Type::ENUM: {
    const auto names = type.asEnum().getEnumerants();
    return capnp::DynamicEnum(names[static_cast<unsigned>(chance.below(names.size()))]);
  }
  case Type::TEXT:
    storage = some_text(chance);
    return capnp::Text::Reader(storage.c_str(), storage.size());
  case Type::DATA:
    storage = some_text(chance);
    return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(storage.data()), storage.size());
  default:
    // A type that no schema used when this was written.
    throw invariant_broken("samples of this type are missing");
  }
}

void fill(DynamicStruct::Builder out, random_source& chance, int depth);

void fill(DynamicList::Builder out, random_source& chance, int depth) {
  std::string storage;
  const auto element = out.getSchema().getElementType();
  for (unsigned i = 0; i < out.size(); ++i) {
    if (element.isStruct())
      fill(out[i].as<DynamicStruct>(), chance, depth + 1);
    else
      out.set(i, some_value(element, chance, storage));
  }
}

void fill(DynamicStruct::Builder out, random_source& chance, int depth) {
  std::string storage;
  for (auto field : out.getSchema().getFields()) {
    const auto type = field.getType();
    if (type.isStruct()) {
      fill(out.init(field).as<DynamicStruct>(), chance, depth + 1);
    } else if (type.isList()) {
      const auto size = depth < depth_max ? chance.below(4) : 0;
      fill(out.init(field, static_cast<unsigned>(size)).as<DynamicList>(), chance, depth);
    } else {
      out.set(field, some_value(type, chance, storage));
    }
  }
}

template<class Kind>
void read_if(const any_msg& m) {
  // Copying reads all that the schema declares.
  if (m.is<Kind>())
    (void)with_correlation(m.as<Kind>(), 1);
}

template<class... Kinds>
void read_as_one_of(const any_msg& m, kind_list<Kinds...>) {
  (read_if<Kinds>(m), ...);
}

} // namespace

std::vector<std::uint64_t> every_kind() {
  return numbers(all_kinds{});
}

any_msg sample(std::uint64_t kind, random_source& chance) {
  const stamp envelope{"node-3/" + std::to_string(chance.below(100)), term{chance.below(3)},
                       generation{chance.next()}, chance.next(), chance.below(2)};
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<Envelope>();
  detail::write_envelope(root, envelope, kind);
  fill(root.getBody().initAs<DynamicStruct>(*schema_of(kind)), chance, 0);
  return any_msg(detail::seal(builder, envelope, kind));
}

void read_everything(const any_msg& m) {
  read_as_one_of(m, all_kinds{});
}

} // namespace troupe::messages::testing
