#include "messages/kinds.hpp"

#include <fmt/format.h>

#include <map>

namespace troupe::messages {

namespace {

template<class... Kinds>
std::map<std::uint64_t, capnp::StructSchema> schemas(kind_list<Kinds...>) {
  return {{capnp::typeId<Kinds>(), capnp::Schema::from<Kinds>()}...};
}

const std::map<std::uint64_t, capnp::StructSchema>& table() {
  static const auto all = schemas(all_kinds{});
  return all;
}

std::string short_name(capnp::StructSchema schema) {
  return schema.getShortDisplayName().cStr();
}

} // namespace

std::optional<capnp::StructSchema> schema_of(std::uint64_t kind) {
  const auto found = table().find(kind);
  if (found == table().end())
    return std::nullopt;
  return found->second;
}

std::string kind_name(std::uint64_t kind) {
  const auto schema = schema_of(kind);
  return schema ? short_name(*schema) : fmt::format("unknown kind {:#x}", kind);
}

std::optional<std::uint64_t> kind_named(const std::string& name) {
  for (const auto& [kind, schema] : table())
    if (short_name(schema) == name)
      return kind;
  return std::nullopt;
}

} // namespace troupe::messages
