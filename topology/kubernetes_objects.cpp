#include "topology/kubernetes_objects.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::topology {

namespace {

constexpr std::string_view list_suffix = "List";

const json_value* member_of(const json_value& of, std::string_view name) {
  if (of.is == json_value::kind::object)
    for (const auto& member : of.inside)
      if (member.name == name)
        return &member;
  return nullptr;
}

std::vector<std::string> internal_addresses(json_members& node, json_problem& problem) {
  std::vector<std::string> found;
  const auto* status = node.optional_object("status");
  if (status == nullptr)
    return found;
  json_members members(*status, "the status of a node", problem);
  for (const auto& one : members.optional_list("addresses")) {
    json_members address(one, "an address of a node", problem);
    const auto text = address.text("address");
    if (address.text("type") == "InternalIP" &&
        std::find(found.begin(), found.end(), text) == found.end())
      found.push_back(text);
  }
  return found;
}

} // namespace

std::string_view text_member(const json_value& of, std::string_view name) {
  const auto* member = member_of(of, name);
  return member != nullptr && member->is == json_value::kind::text ? std::string_view(member->text)
                                                                   : std::string_view();
}

std::vector<kubernetes_object> objects_in(const json_value& document) {
  auto kind = text_member(document, "kind");
  const auto* items = member_of(document, "items");
  if (items == nullptr || items->is != json_value::kind::array)
    return {{kind, &document}};
  // A list of one kind may leave it to its own kind what they are: NodeList.
  if (kind.size() > list_suffix.size() &&
      kind.substr(kind.size() - list_suffix.size()) == list_suffix)
    kind.remove_suffix(list_suffix.size());
  std::vector<kubernetes_object> found;
  for (const auto& one : items->inside) {
    const auto own = text_member(one, "kind");
    found.push_back({own.empty() ? kind : own, &one});
  }
  return found;
}

std::vector<kubernetes_node> nodes_in(const json_value& document, json_problem& problem) {
  std::vector<kubernetes_node> found;
  for (const auto& object : objects_in(document)) {
    if (object.kind != "Node" || problem.first())
      continue;
    json_members node(*object.value, "a node", problem);
    kubernetes_node read;
    read.line = object.value->line;
    if (const auto* metadata = node.object("metadata")) {
      json_members members(*metadata, "the metadata of a node", problem);
      read.name = members.text("name");
      read.line = members.line_of("name");
      if (const auto* labels = members.optional_object("labels"))
        for (const auto& one : labels->inside)
          if (one.is == json_value::kind::text)
            read.labels.emplace(one.name, one.text);
    }
    read.addresses = internal_addresses(node, problem);
    found.push_back(std::move(read));
  }
  return found;
}

label_selector::label_selector(const json_value& from, json_problem& problem) {
  json_members members(from, "'labelMatch'", problem);
  if (const auto* labels = members.optional_object("matchLabels"))
    for (const auto& one : labels->inside) {
      if (one.is != json_value::kind::text)
        problem.found(one.line, fmt::format("label '{}' of 'matchLabels' is no text", one.name));
      requirements_.push_back({requirement::kind::in, one.name, {one.text}});
    }
  for (const auto& one : members.optional_list("matchExpressions"))
    add_expression(one, problem);
}

void label_selector::add_expression(const json_value& from, json_problem& problem) {
  json_members members(from, "a matchExpression", problem);
  requirement read;
  members.text("key");
  read.key = text_member(from, "key");
  const auto how = members.text("operator");
  if (how == "In")
    read.is = requirement::kind::in;
  else if (how == "NotIn")
    read.is = requirement::kind::not_in;
  else if (how == "Exists")
    read.is = requirement::kind::exists;
  else if (how == "DoesNotExist")
    read.is = requirement::kind::does_not_exist;
  else
    problem.found(members.line_of("operator"),
                  fmt::format("operator is '{}'; expected In, NotIn, Exists or DoesNotExist", how));
  for (const auto& value : members.optional_list("values")) {
    if (value.is != json_value::kind::text)
      problem.found(value.line, "a value of a matchExpression is no text");
    read.values.push_back(value.text);
  }
  requirements_.push_back(std::move(read));
}

bool label_selector::selects(const kubernetes_node& node) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&node](const auto& one) {
    const auto found = node.labels.find(one.key);
    const bool has = found != node.labels.end();
    const bool among =
        has && std::find(one.values.begin(), one.values.end(), found->second) != one.values.end();
    switch (one.is) {
    case requirement::kind::in:
      return among;
    case requirement::kind::not_in:
      return !among;
    case requirement::kind::exists:
      return has;
    case requirement::kind::does_not_exist:
      return !has;
    }
    return false;
  });
}

} // namespace troupe::topology
