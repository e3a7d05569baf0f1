#include "launch/options/arguments.hpp"

#include <fmt/format.h>

/// actor-stacks' command line, which is that of xpu_timer_stacktrace_viewer and one option more.
namespace troupe::launch {

parsed<stacks_options> parse_stacks(const std::vector<std::string>& arguments,
                                    const machine_facts& machine) {
  stacks_options o;
  argument_grammar d(
      "actor-stacks", "[options]",
      "Merges the stacks of all ranks of a job into one picture: py_stack.svg and cpp_stack.svg "
      "(to be opened in a browser), py_stack and cpp_stack (folded, for flamegraph.pl) and "
      "stacks.json. Reads the dumps of Troupe (rank-00003-of-00008.stacks) and of xpu_timer "
      "(00003-00008.stacktrace). Takes the command line of xpu_timer_stacktrace_viewer. Ends with "
      "0: written, and what could not be read is named; 1: there was nothing to read, or it could "
      "not be written; 2: the command line is wrong.");
  d.add({"Files",
         {typed_only({scope::process,
                      {"-p", "--path"},
                      "DIR",
                      "Where the dumps are (the current directory)",
                      into(o.path)}),
          typed_only({scope::process,
                      {"-o", "--output"},
                      "DIR",
                      "Where to write; it is made if need be (--path)",
                      into(o.output)})}});
  declare_answers(d, machine.columns);
  auto said = d.parse(arguments, machine.environment);
  if (auto* text = std::get_if<just_print>(&said))
    return *text;
  if (auto* wrong = std::get_if<refusal>(&said))
    return *wrong;
  const auto& rest = std::get<argument_grammar::positional>(said).rest;
  if (!rest.empty())
    return refusal{fmt::format("'{}' is no option of actor-stacks (see --help)", rest.front())};
  if (o.path.empty())
    return refusal{"--path: which directory?"};
  if (o.output.empty())
    o.output = o.path;
  return o;
}

} // namespace troupe::launch
