#include "topology/kubernetes_files.hpp"

#include "topology/kubernetes_objects.hpp"
#include "topology/limits.hpp"
#include "topology/name_pattern.hpp"
#include "topology/place_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::topology {

namespace {

/// Nodes and HyperNodes of one document, hung below each other.
class hypernode_reader {
 public:
  hypernode_reader(const json_value& document, json_problem& problem)
      : problem_(problem), nodes_(nodes_in(document, problem)) {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      node_numbers_.emplace(nodes_[n].name, n);
    knows_nodes_ = !nodes_.empty();
    for (const auto& object : objects_in(document))
      if (object.kind == "HyperNode" && !problem_.first())
        read(*object.value);
    for (std::size_t n = 0; n < hypernodes_.size() && !problem_.first(); ++n)
      hang_members(n);
  }

  result<network_tree> tree() {
    place_list places(problem_);
    for (std::size_t n = 0; n < nodes_.size() && !problem_.first(); ++n)
      places.add({nodes_[n].name, switches_above(n), nodes_[n].addresses}, nodes_[n].line);
    return std::move(places).tree();
  }

 private:
  struct hypernode {
    std::string name;
    std::uint32_t tier = 0, line = 0;
    const std::vector<json_value>* members = nullptr;
  };
  /// The HyperNode that something is below, and the line that says so.
  struct above {
    std::size_t hypernode = 0;
    std::uint32_t line = 0;
  };

  void read(const json_value& value) {
    json_members members(value, "a HyperNode", problem_);
    hypernode one;
    one.line = value.line;
    if (const auto* metadata = members.object("metadata")) {
      json_members named(*metadata, "the metadata of a HyperNode", problem_);
      one.name = named.text("name");
      one.line = named.line_of("name");
    }
    if (const auto* spec = members.object("spec")) {
      json_members said(*spec, "the spec of a HyperNode", problem_);
      one.tier = said.number("tier");
      said.optional_text("tierName");
      one.members = &said.optional_list("members");
    }
    const auto [earlier, fresh] = numbers_.emplace(one.name, hypernodes_.size());
    if (!fresh)
      problem_.found(one.line, fmt::format("HyperNode {} is on line {} already", one.name,
                                           hypernodes_[earlier->second].line));
    hypernodes_.push_back(std::move(one));
  }

  void hang_members(std::size_t number) {
    if (hypernodes_[number].members == nullptr)
      return;
    for (const auto& one : *hypernodes_[number].members) {
      json_members member(one, "a member", problem_);
      const auto type = member.text("type");
      const auto* selector = member.object("selector");
      if (selector == nullptr || problem_.first())
        return;
      if (type == "Node")
        hang_nodes(number, *selector);
      else if (type == "HyperNode")
        hang_hypernodes(number, *selector);
      else
        problem_.found(member.line_of("type"),
                       fmt::format("type is '{}'; expected Node or HyperNode", type));
    }
  }

  void hang_nodes(std::size_t number, const json_value& selector) {
    json_members how(selector, "a selector", problem_);
    if (const auto* exact = how.optional_object("exactMatch")) {
      const auto name = json_members(*exact, "'exactMatch'", problem_).text("name");
      // A file that has HyperNodes only says in this way which nodes there are.
      const auto [found, fresh] = node_numbers_.emplace(name, nodes_.size());
      if (fresh)
        nodes_.push_back({name, {}, {}, exact->line});
      hang(nodes_above_, found->second, "node " + name, number, exact->line);
    } else if (const auto* pattern = how.optional_object("regexMatch")) {
      const auto fitting = pattern_of(*pattern);
      for (std::size_t n = 0; needs_nodes(*pattern) && fitting && n < nodes_.size(); ++n)
        if (fitting->fits(nodes_[n].name, looks_) && within_bounds(*pattern))
          hang(nodes_above_, n, "node " + nodes_[n].name, number, pattern->line);
    } else if (const auto* labels = how.optional_object("labelMatch")) {
      const label_selector selects(*labels, problem_);
      for (std::size_t n = 0; needs_nodes(*labels) && n < nodes_.size(); ++n) {
        looks_ += selects.size();
        if (selects.selects(nodes_[n]) && within_bounds(*labels))
          hang(nodes_above_, n, "node " + nodes_[n].name, number, labels->line);
      }
    } else {
      problem_.found(selector.line, "expected exactMatch, regexMatch or labelMatch");
    }
    within_bounds(selector);
  }

  void hang_hypernodes(std::size_t number, const json_value& selector) {
    json_members how(selector, "a selector", problem_);
    if (const auto* exact = how.optional_object("exactMatch")) {
      const auto name = json_members(*exact, "'exactMatch'", problem_).text("name");
      const auto found = numbers_.find(name);
      if (found == numbers_.end())
        return problem_.found(exact->line, fmt::format("HyperNode {} is not in the file", name));
      hang_hypernode(found->second, number, exact->line);
    } else if (const auto* pattern = how.optional_object("regexMatch")) {
      const auto fitting = pattern_of(*pattern);
      for (std::size_t n = 0; fitting && n < hypernodes_.size() && within_bounds(*pattern); ++n)
        if (n != number && fitting->fits(hypernodes_[n].name, looks_))
          hang_hypernode(n, number, pattern->line);
    } else if (how.has("labelMatch")) {
      problem_.found(how.line_of("labelMatch"), "labelMatch is for members of the type Node");
    } else {
      problem_.found(selector.line, "expected exactMatch or regexMatch");
    }
  }

  void hang_hypernode(std::size_t which, std::size_t below, std::uint32_t line) {
    // So no HyperNode comes to be below itself.
    if (hypernodes_[which].tier >= hypernodes_[below].tier)
      return problem_.found(line,
                            fmt::format("HyperNode {} has tier {}, and is below {} of tier {}",
                                        hypernodes_[which].name, hypernodes_[which].tier,
                                        hypernodes_[below].name, hypernodes_[below].tier));
    hang(hypernodes_above_, which, "HyperNode " + hypernodes_[which].name, below, line);
  }

  void hang(std::map<std::size_t, above>& all, std::size_t which, const std::string& name,
            std::size_t below, std::uint32_t line) {
    const auto [earlier, fresh] = all.emplace(which, above{below, line});
    // Two selectors of one HyperNode may both have it.
    if (!fresh && earlier->second.hypernode != below)
      problem_.found(line, fmt::format("{} is below HyperNode {} on line {} already", name,
                                       hypernodes_[earlier->second.hypernode].name,
                                       earlier->second.line));
  }

  std::optional<name_pattern> pattern_of(const json_value& from) {
    auto made = name_pattern::of(json_members(from, "'regexMatch'", problem_).text("pattern"));
    if (made)
      return std::move(*made);
    problem_.found(from.line, "the pattern of 'regexMatch' is refused: " + made.error().what);
    return std::nullopt;
  }

  bool needs_nodes(const json_value& selector) {
    if (!knows_nodes_)
      problem_.found(selector.line,
                     fmt::format("'{}' needs the nodes and their labels in the same file: kubectl "
                                 "get nodes,hypernodes -o json",
                                 selector.name));
    return knows_nodes_;
  }

  bool within_bounds(const json_value& selector) {
    if (looks_ <= limits::topology_looks_max)
      return true;
    problem_.found(selector.line, "up to here regexMatch and labelMatch are too much work");
    return false;
  }

  std::vector<std::string> switches_above(std::size_t node) const {
    std::vector<std::string> switches;
    const auto found = nodes_above_.find(node);
    if (found == nodes_above_.end())
      return switches;
    for (auto at = found->second.hypernode;;) {
      switches.push_back(hypernodes_[at].name);
      const auto next = hypernodes_above_.find(at);
      if (next == hypernodes_above_.end())
        break;
      at = next->second.hypernode;
    }
    std::reverse(switches.begin(), switches.end());
    return switches;
  }

  json_problem& problem_;
  std::vector<kubernetes_node> nodes_;
  bool knows_nodes_ = false;
  std::vector<hypernode> hypernodes_;
  std::map<std::string, std::size_t> node_numbers_, numbers_;
  std::map<std::size_t, above> nodes_above_, hypernodes_above_;
  std::uint64_t looks_ = 0;
};

} // namespace

bool is_of_kubernetes(const json_value& document) {
  return !text_member(document, "kind").empty();
}

kubernetes_kinds kinds_in(const json_value& document) {
  kubernetes_kinds found;
  for (const auto& object : objects_in(document)) {
    if (object.kind == "Node")
      found.nodes = true;
    else if (object.kind == "HyperNode")
      found.hypernodes = true;
    else if (found.other.empty())
      found.other = object.kind;
  }
  return found;
}

result<network_tree> tree_of_nodes(const json_value& document,
                                   const std::vector<std::string>& label_keys) {
  if (label_keys.empty())
    return failure(errc::invalid, "which labels of the nodes are switches is not said "
                                  "(--topology-labels KEY,…, the top of the network first)");
  json_problem problem;
  const auto nodes = nodes_in(document, problem);
  place_list places(problem);
  for (const auto& node : nodes) {
    place one{node.name, {}, node.addresses};
    for (const auto& key : label_keys) {
      const auto found = node.labels.find(key);
      if (found == node.labels.end() || found->second.empty())
        break;
      one.switches.emplace_back(found->second);
    }
    places.add(std::move(one), node.line);
  }
  const auto has = [&nodes](const std::string& key) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&key](const auto& node) { return node.labels.count(key) != 0; });
  };
  for (const auto& key : label_keys)
    if (!problem.first() && !has(key))
      return failure(errc::invalid,
                     fmt::format("none of {} nodes has the label '{}'", nodes.size(), key));
  return std::move(places).tree();
}

result<network_tree> tree_of_hypernodes(const json_value& document) {
  json_problem problem;
  hypernode_reader reader(document, problem);
  return reader.tree();
}

} // namespace troupe::topology
