#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/flame_graph.hpp"
#include "diag/stacks/merged_message.hpp"
#include "diag/stacks/stack_files.hpp"
#include "diag/stacks/xpu_timer_file.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/invariant.hpp"

#include <cstdint>
#include <string_view>

using namespace troupe;

namespace {

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

std::string text_of_all(const diag::merged_stacks& stacks) {
  const auto world = diag::rank_set::below(stacks.world_size);
  return diag::folded(stacks.python, world) + diag::folded(stacks.native, world);
}

/// What was read can be shown, goes through a message, and merges with itself into the same places.
void use(const diag::merged_stacks& stacks) {
  const auto text = text_of_all(stacks);
  const auto svg = diag::svg_of(stacks.python, stacks, {"Python"}) +
                   diag::svg_of(stacks.native, stacks, {"native"});
  invariant(svg.find("]]></script>") != std::string::npos, "no picture was drawn");
  invariant(!diag::to_json(stacks).empty(), "no JSON was written");
  const auto said = messages::local<messages::MergedStacks>(
      "fuzz", [&stacks](auto body) { diag::write_merged(stacks, body); });
  const auto heard = diag::read_merged(*said.read());
  invariant(heard.has_value(), "what was written cannot be read");
  invariant(text_of_all(*heard) == text, "other stacks came out of a message");
  diag::merged_stacks twice;
  twice.merge(stacks);
  twice.merge(*heard);
  invariant(twice.native.nodes().size() == stacks.native.nodes().size(), "places were added");
}

void as_xpu_timer(std::string_view bytes) {
  diag::process_stacks process;
  process.world_size = 8;
  const auto read = diag::read_xpu_timer(bytes, process);
  invariant(read.has_value() || is_one_line(read.error().what), "nothing is said of what is wrong");
  diag::merged_stacks stacks;
  stacks.add(process);
  use(stacks);
}

void as_dump(std::string_view bytes) {
  diag::merged_stacks stacks;
  const auto read = diag::add_dump(stacks, bytes, {3, 8});
  invariant(read.has_value() || is_one_line(read.error().what), "nothing is said of what is wrong");
  use(stacks);
}

void as_merged(const std::uint8_t* data, std::size_t size) {
  const auto m = messages::admit(data, size);
  if (!m || !m->is<messages::MergedStacks>())
    return;
  const auto read = diag::read_merged(*m->as<messages::MergedStacks>().read());
  if (read)
    use(*read);
  else
    invariant(is_one_line(read.error().what), "nothing is said of what is wrong");
}

} // namespace

/// Any bytes as a file of xpu_timer, as a dump of ours and as a node's merged stacks.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  as_xpu_timer(bytes);
  as_dump(bytes);
  as_merged(data, size);
  return 0;
}
