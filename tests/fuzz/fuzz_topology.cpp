#include "runtime/base/invariant.hpp"
#include "topology/compressed_text.hpp"
#include "topology/limits.hpp"
#include "topology/name_pattern.hpp"
#include "topology/rank_order.hpp"
#include "topology/rank_table.hpp"
#include "topology/read_topology.hpp"

#include <cstdint>
#include <string_view>

using namespace troupe;

namespace {

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

/// What was read is a network: its nodes are found, and have an order.
void use(const topology::network_tree& tree) {
  topology::rank_request wanted;
  for (std::size_t node = 0; node < tree.size(); ++node) {
    invariant(tree.find(tree.at(node).node) == node, "a node is not found by its name");
    wanted.nodes.push_back(tree.at(node).node);
  }
  if (wanted.nodes.empty())
    return;
  const auto order = topology::arrange(tree, wanted);
  invariant(order.has_value(), "nodes of a tree have no order");
  for (const auto& level : order->levels)
    invariant(level.after.ring == level.optimum.ring, "the order is crossed too often");
}

void as_file(std::string_view text, const std::vector<std::string>& label_keys) {
  const auto read = topology::read_topology(text, label_keys);
  if (read)
    use(read->tree);
  else
    invariant(is_one_line(read.error().what), "nothing is said of what is wrong");
}

void as_rank_table(std::string_view text) {
  const auto table = topology::rank_table_of(text);
  if (!table || !table->completed)
    return;
  const auto written = topology::text_of(*table);
  const auto again = topology::rank_table_of(written);
  invariant(again && topology::text_of(*again) == written, "what was written is read differently");
}

void as_pattern(std::string_view text) {
  const auto pattern = topology::name_pattern::of(text);
  std::uint64_t looks = 0;
  constexpr std::string_view name = "node-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-17";
  if (pattern)
    pattern->fits(name, looks);
  invariant(looks <= (name.size() + 1) * (limits::name_pattern_steps_max + 1),
            "a pattern is looked at too often");
}

} // namespace

/// Any bytes as a file that tells of a network, as a rank table, and as a pattern of names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_file(text, {});
  as_file(text, {"zone", "rack"});
  as_rank_table(text);
  as_pattern(text);
  return 0;
}
