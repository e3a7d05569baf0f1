#include "messages/node_names.hpp"

#include "messages/kinds.hpp"
#include "runtime/base/fnv1a.hpp"

#include <capnp/any.h>
#include <capnp/dynamic.h>

#include <map>
#include <set>
#include <vector>

namespace troupe::messages {

namespace {

using field = capnp::StructSchema::Field;

/// For each struct that names nodes, directly or below: the fields that lead there.
using paths = std::map<std::uint64_t, std::vector<field>>;

bool is_node_name(const field& f) {
  return f.getType().isText() && f.getProto().getName() == "node";
}

/// The struct that a field holds, also as a group or in a list of any depth.
std::optional<capnp::StructSchema> struct_in(const field& f) {
  auto type = f.getType();
  while (type.isList())
    type = type.asList().getElementType();
  if (!type.isStruct())
    return std::nullopt;
  return type.asStruct();
}

void collect(const capnp::StructSchema& from, std::map<std::uint64_t, capnp::StructSchema>& all) {
  if (!all.emplace(from.getProto().getId(), from).second)
    return;
  for (const auto f : from.getFields())
    if (const auto below = struct_in(f))
      collect(*below, all);
}

template<class... Kinds>
std::map<std::uint64_t, capnp::StructSchema> all_structs(kind_list<Kinds...>) {
  std::map<std::uint64_t, capnp::StructSchema> all;
  (collect(capnp::Schema::from<Kinds>(), all), ...);
  return all;
}

/// Structs may contain themselves: the set grows until nothing is added.
paths find_paths() {
  const auto all = all_structs(all_kinds{});
  std::set<std::uint64_t> naming;
  const auto leads = [&naming](const field& f) {
    const auto below = struct_in(f);
    return is_node_name(f) || (below && naming.count(below->getProto().getId()) != 0);
  };
  paths found;
  for (std::size_t before = all.size() + 1; before != naming.size();) {
    before = naming.size();
    for (const auto& [id, schema] : all) {
      auto& leading = found[id];
      leading.clear();
      for (const auto f : schema.getFields())
        if (leads(f))
          leading.push_back(f);
      if (!leading.empty())
        naming.insert(id);
    }
  }
  return found;
}

class search {
 public:
  search(const paths& where, const std::string& own) : where_(where), own_(own) {}

  std::optional<spoken_for> in(const capnp::DynamicStruct::Reader& part, const std::string& at) {
    const auto leading = where_.find(part.getSchema().getProto().getId());
    if (leading == where_.end())
      return std::nullopt;
    for (const auto& f : leading->second) {
      // An absent part names no node, and the other arms of a union may not be read.
      if (!part.has(f))
        continue;
      if (auto found = in_value(part.get(f), at + f.getProto().getName().cStr()))
        return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<spoken_for> in_value(const capnp::DynamicValue::Reader& value,
                                     const std::string& at) {
    switch (value.getType()) {
    case capnp::DynamicValue::TEXT: {
      const auto name = value.as<capnp::Text>();
      if (name == own_.c_str())
        return std::nullopt;
      return spoken_for{name.cStr(), at};
    }
    case capnp::DynamicValue::STRUCT:
      return in(value.as<capnp::DynamicStruct>(), at + ".");
    case capnp::DynamicValue::LIST:
      for (const auto element : value.as<capnp::DynamicList>())
        if (auto found = in_value(element, at))
          return found;
      return std::nullopt;
    default:
      return std::nullopt;
    }
  }

  const paths& where_;
  const std::string& own_;
};

} // namespace

std::optional<spoken_for> speaks_for_another(const any_msg& m, const std::string& own) {
  static const paths where = find_paths();
  const auto schema = schema_of(m.kind());
  if (!schema || where.at(m.kind()).empty())
    return std::nullopt;
  capnp::FlatArrayMessageReader reader(m.words(), detail::reader_options());
  const auto body = reader.getRoot<Envelope>().getBody().getAs<capnp::DynamicStruct>(*schema);
  return search(where, own).in(body, "");
}

std::uint64_t fingerprint(std::string_view node) {
  fnv1a hash;
  hash.take(node);
  return hash.value();
}

} // namespace troupe::messages
