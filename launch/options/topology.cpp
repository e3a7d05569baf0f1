#include "launch/options/topology.hpp"

#include "launch/options/arguments.hpp"
#include "launch/options/rendezvous.hpp"
#include "launch/options/values.hpp"
#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

namespace troupe::launch {

option_group topology_group(topology_arguments& w) {
  return in_full(option_group{
      "Ranks by the network",
      {{scope::job,
        {"--topology"},
        "FILE",
        "Neighbours in rank become neighbours in the network of this file: lines asw psw ip, a "
        "JSON tree, a rank table, HyperNodes, nodes of Kubernetes. What is wrong with it ends no "
        "job: ranks are then as without it",
        into(w.file)},
       {scope::job,
        {"--topology-labels"},
        "KEY,...",
        "Of nodes of Kubernetes: the labels whose values are the switches, the top of the network "
        "first",
        into(w.label_keys)},
       {scope::job,
        {"--topology-worse-by"},
        "N",
        "Nodes keep their ranks while no level is crossed more than N times beyond the optimum for "
        "each node that was replaced (1)",
        into(w.worse_by)},
       {scope::job,
        {"--topology-wait"},
        "SECONDS",
        "How long the first start waits for a file that is missing or not complete (60)",
        into(w.wait)}}});
}

void declare_own_place(argument_grammar& d, launcher_options& o,
                       std::optional<std::string>& above) {
  d.add(in_full(option_group{
      "This node's place in the network",
      {{scope::node,
        {"--switches"},
        "NAME/...",
        "The switches above this node, the top of the network first (pod-0/rack-7): what the "
        "master goes by for a node that is not in its --topology",
        into(above)},
       {scope::node,
        {"--rank-files"},
        "DIR",
        "Before workers start, write this node's rank to DIR/RANK_AFTER_ACC, and to "
        "DIR/MASTER_INDEX which rank the node with rank 0 would have without --topology",
        into(o.rank_files)},
       typed_only({scope::process,
                   {"--print-ranks"},
                   "",
                   "No run: print the ranks that the nodes of --topology get (the first of them "
                   "with --nnodes, in groups of --node_unit); with the word json behind it as "
                   "JSON",
                   into(o.print_ranks)})}}));
}

result<topology_settings> derive_topology(const topology_arguments& w) {
  topology_settings s;
  s.file = w.file;
  if (w.label_keys) {
    if (w.file.empty())
      return failure(errc::invalid, "--topology-labels: say of which nodes, by --topology FILE");
    for (const auto& word : split(*w.label_keys, ',')) {
      s.label_keys.push_back(stripped(word));
      if (s.label_keys.back().empty())
        return failure(errc::invalid,
                       fmt::format("--topology-labels: '{}' has an empty key", *w.label_keys));
    }
  }
  if (w.worse_by < 0 || w.worse_by > limits::nodes_max)
    return failure(errc::invalid, fmt::format("--topology-worse-by: {} is not from 0 to {}",
                                              w.worse_by, limits::nodes_max));
  s.worse_by = static_cast<std::uint32_t>(w.worse_by);
  constexpr auto most = std::chrono::duration<double>(limits::topology_wait_max).count();
  if (!(w.wait >= 0 && w.wait <= most))
    return failure(errc::invalid,
                   fmt::format("--topology-wait: {} is not from 0 to {} seconds", w.wait, most));
  s.wait = std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.wait));
  return s;
}

result<std::vector<std::string>> parse_switches(const std::string& text) {
  std::vector<std::string> names;
  if (stripped(text).empty())
    return names;
  for (const auto& word : split(text, '/')) {
    names.push_back(stripped(word));
    if (names.back().empty())
      return failure(errc::invalid, fmt::format("--switches: '{}' has a switch without a name; "
                                                "expected names with / between them",
                                                text));
  }
  return names;
}

std::vector<std::string> machine_names(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> names;
  for (const auto* variable : {"NODE_NAME", "NODE_IP", "MA_CURRENT_HOST_IP"}) {
    const auto found = environment.find(variable);
    if (found == environment.end())
      continue;
    const auto name = stripped(found->second);
    if (!name.empty() && name.size() <= limits::name_max)
      names.push_back(name);
  }
  static_assert(limits::machine_names_max >= 3);
  return names;
}

result<void> derive_ranks_request(launcher_options& o, const torchrun_arguments& w,
                                  const policy_arguments& policy) {
  if (o.policy.topology.file.empty())
    return failure(errc::invalid, "--print-ranks: of which network? Give --topology FILE");
  ranks_request r;
  r.from = o.policy.topology;
  r.json = o.command.size() == 1 && o.command.front() == "json";
  if (!o.command.empty() && !r.json)
    return failure(errc::invalid, fmt::format("--print-ranks: '{}' is not json; no script is run",
                                              o.command.front()));
  if (w.nodes != torchrun_arguments{}.nodes) {
    const auto nodes = parse_nodes(w.nodes);
    if (!nodes)
      return tl::make_unexpected(nodes.error());
    r.nodes = nodes->second;
  }
  if (policy.node_unit < 1 || policy.node_unit > limits::nodes_max)
    return failure(errc::invalid, fmt::format("--node_unit: {} is not from 1 to {}",
                                              policy.node_unit, limits::nodes_max));
  r.unit = static_cast<std::uint32_t>(policy.node_unit);
  o.ranks_wanted = std::move(r);
  return {};
}

} // namespace troupe::launch
