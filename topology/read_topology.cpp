#include "topology/read_topology.hpp"

#include "topology/compressed_text.hpp"
#include "topology/kubernetes_files.hpp"
#include "topology/kubernetes_objects.hpp"
#include "topology/limits.hpp"
#include "topology/rank_table.hpp"
#include "topology/tor_list.hpp"
#include "topology/tor_nodes.hpp"
#include "topology/tree_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::topology {

namespace {

constexpr std::string_view white = " \t\r\n";

result<topology_read> taken_for(topology_format format, result<network_tree> tree) {
  if (tree)
    return topology_read{std::move(*tree), format};
  auto why = std::move(tree.error());
  why.what = fmt::format("taken for {}: {}", in_words(format), why.what);
  return tl::make_unexpected(std::move(why));
}

/// Base64 is one word a line; a line of a node has several.
bool has_words_in_lines(std::string_view text) {
  const auto begin = text.find_first_not_of(white);
  text.remove_prefix(std::min(begin, text.size()));
  const auto line = text.substr(0, text.find('\n'));
  const auto first = line.find_first_of(" \t");
  return first != std::string_view::npos && line.find_first_not_of(white, first) != line.npos;
}

/// The switch of a tree may be called as a member of another format is. But what hangs from it is a
/// list or an object, and these are texts and numbers there.
bool has(const json_value& document, std::string_view name) {
  const auto is = [name](const auto& member) {
    return member.name == name && member.is != json_value::kind::array &&
           member.is != json_value::kind::object;
  };
  return document.is == json_value::kind::object &&
         std::any_of(document.inside.begin(), document.inside.end(), is);
}

bool has_server_list(const json_value& document) {
  const auto is = [](const auto& member) {
    return member.name == "server_list" && member.is == json_value::kind::array;
  };
  return document.is == json_value::kind::object &&
         std::any_of(document.inside.begin(), document.inside.end(), is);
}

result<network_tree> tree_of_rank_table(const json_value& document) {
  const auto table = rank_table_of(document);
  if (!table)
    return tl::make_unexpected(table.error());
  return tree_of(*table);
}

result<topology_read> of_kubernetes(const json_value& document,
                                    const std::vector<std::string>& label_keys) {
  const auto kinds = kinds_in(document);
  if (kinds.nodes && (!kinds.hypernodes || !label_keys.empty()))
    return taken_for(topology_format::nodes, tree_of_nodes(document, label_keys));
  if (kinds.hypernodes)
    return taken_for(topology_format::hypernodes, tree_of_hypernodes(document));
  if (kinds.other == "ConfigMap")
    return failure(errc::invalid,
                   "it is a ConfigMap; expected what is in it: kubectl get configmap NAME -o "
                   "jsonpath='{.data.KEY}'");
  return failure(errc::invalid,
                 fmt::format("it is of Kubernetes, and has neither nodes nor HyperNodes ({})",
                             kinds.other.empty() ? "an empty list" : kinds.other));
}

result<topology_read> of_json(const json_value& document,
                              const std::vector<std::string>& label_keys) {
  if (is_of_kubernetes(document))
    return of_kubernetes(document, label_keys);
  if (has(document, "tor_count"))
    return taken_for(topology_format::tor_nodes, tree_of_tor_nodes(document));
  if (has(document, "status") || has(document, "version"))
    return taken_for(topology_format::rank_table, tree_of_rank_table(document));
  if (has_server_list(document))
    return taken_for(topology_format::tor_list, tree_of_tor_list(document));
  return taken_for(topology_format::json_tree, tree_of_json(document));
}

} // namespace

std::string_view in_words(topology_format format) {
  switch (format) {
  case topology_format::lines:
    return "lines 'asw psw ip'";
  case topology_format::json_tree:
    return "a JSON tree of switches";
  case topology_format::rank_table:
    return "a rank table";
  case topology_format::tor_list:
    return "a ranktable_tor.json";
  case topology_format::tor_nodes:
    return "a basic-tor-node-cm";
  case topology_format::hypernodes:
    return "HyperNodes";
  case topology_format::nodes:
    return "nodes of Kubernetes";
  }
  return {};
}

result<topology_read> read_topology(std::string_view text,
                                    const std::vector<std::string>& label_keys) {
  if (text.size() > limits::topology_text_max)
    return failure(errc::invalid, fmt::format("it has {} bytes; {} are allowed", text.size(),
                                              limits::topology_text_max));
  const auto begin = text.find_first_not_of(white);
  if (begin == std::string_view::npos)
    return failure(errc::unavailable, "it is empty");
  const bool is_json = text[begin] == '{' || text[begin] == '[';
  if (!is_json && has_words_in_lines(text))
    return taken_for(topology_format::lines, tree_of_lines(text));
  const auto document = text[begin] == '[' ? located_json(text, prose::passed_over)
                                           : plain_json(text, prose::passed_over);
  if (document)
    return of_json(*document, label_keys);
  auto why = document.error();
  why.what = fmt::format("taken for {}: {}", is_json ? "JSON" : "gzip in base64", why.what);
  return tl::make_unexpected(std::move(why));
}

} // namespace troupe::topology
