#pragma once

#include "topology/located_json.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::topology {

/// An object of a list, and what kind of it.
struct kubernetes_object {
  std::string_view kind;
  const json_value* value = nullptr;
};

/// A text member of an object, if there is such a one.
std::string_view text_member(const json_value& of, std::string_view name);

/// The objects of a document: itself, or those in its `items`.
std::vector<kubernetes_object> objects_in(const json_value& document);

/// A node of Kubernetes, as far as it matters here.
struct kubernetes_node {
  std::string name;
  std::vector<std::string> addresses; ///< internal ones
  std::map<std::string_view, std::string_view> labels;
  std::uint32_t line = 0;
};

std::vector<kubernetes_node> nodes_in(const json_value& document, json_problem& problem);

/// `matchLabels` and `matchExpressions`.
class label_selector {
 public:
  label_selector(const json_value& from, json_problem& problem);

  bool selects(const kubernetes_node& node) const;
  /// What a look at a node costs.
  std::size_t size() const { return 1 + requirements_.size(); }

 private:
  struct requirement {
    enum class kind : std::uint8_t { in, not_in, exists, does_not_exist };
    kind is = kind::in;
    std::string_view key;
    std::vector<std::string_view> values;
  };
  void add_expression(const json_value& from, json_problem& problem);

  std::vector<requirement> requirements_;
};

} // namespace troupe::topology
