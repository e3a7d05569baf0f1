#include "runtime/os/stacks/dump_text.hpp"

#include <fmt/format.h>

namespace troupe::os {

namespace {

std::string_view words_of_state(char state) {
  switch (state) {
  case 'R':
    return "running";
  case 'S':
  case 'I':
    return "sleeping";
  case 'D':
    return "waiting in the kernel";
  case 'T':
    return "stopped";
  case 't':
    return "stopped by a debugger";
  case 'Z':
    return "ended";
  default:
    return "in an unknown state";
  }
}

/// Names come from the other process: a terminal must not obey them.
std::string printable(std::string_view text) {
  std::string clean(text);
  for (auto& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return clean;
}

std::string text_of_frame(const diag::stack_frame& f) {
  const auto function = f.function.empty() ? "??" : printable(f.function);
  if (f.line != 0)
    return fmt::format("{} ({}:{})", function, printable(f.source), f.line);
  return f.source.empty() ? function : fmt::format("{} ({})", function, printable(f.source));
}

std::string text_of_thread(const diag::thread_stacks& t) {
  auto text = fmt::format("Thread {} ({}): {}", t.id, printable(t.name), words_of_state(t.state));
  if (!t.waits_in.empty())
    text += " in " + printable(t.waits_in);
  if (t.holds_gil)
    text += ", holds Python's lock";
  text += '\n';
  for (const auto& f : t.python)
    text += "    " + text_of_frame(f) + '\n';
  if (!t.native.empty())
    text += "  native:\n";
  for (const auto& f : t.native)
    text += "    " + text_of_frame(f) + '\n';
  return t.missing.empty() ? text : text + "  missing: " + t.missing + '\n';
}

std::string_view words_of(diag::motion m) {
  switch (m) {
  case diag::motion::unknown:
    return "it is not known whether it moves";
  case diag::motion::moves:
    return "it moves";
  case diag::motion::sleeps:
    return "it stands still and sleeps";
  case diag::motion::spins:
    return "it stands still and uses a processor";
  case diag::motion::stopped:
    return "it is stopped";
  case diag::motion::works:
    return "it is in one call, which may take long";
  case diag::motion::starves:
    return "it waits for a processor, which others have";
  case diag::motion::ends:
    return "its script is over, and it is being closed";
  case diag::motion::awaits:
    return "it sleeps until another of its threads or processes lets it go on";
  }
  return "";
}

/// All below its first line.
std::string text_below(const diag::process_stacks& stacks) {
  std::string text;
  for (const auto& line : stacks.facts)
    text += fmt::format("  {}\n", printable(line));
  for (const auto& line : stacks.missing)
    text += "  missing: " + line + '\n';
  for (const auto& t : stacks.threads)
    text += text_of_thread(t);
  return text;
}

} // namespace

std::string text_of(const process_dump& dump, bool was_watched) {
  const auto& facts = dump.facts;
  const auto& stacks = dump.stacks;
  auto text = fmt::format("Process {} ({})", facts.pid, printable(facts.name));
  if (!stacks.role.empty())
    text += ", " + stacks.role;
  if (!stacks.python_version.empty())
    text += ", Python " + stacks.python_version;
  text += fmt::format(": {}, {} of a processor used\n", words_of_state(facts.state),
                      in_words(facts.cpu));
  if (was_watched)
    text += fmt::format("  {}\n", words_of(stacks.moves));
  return text + text_below(stacks);
}

std::string text_of(const diag::process_stacks& stacks) {
  auto text = fmt::format("Process {}, rank {}", stacks.pid, stacks.rank);
  if (stacks.world_size != 0)
    text += fmt::format(" of {}", stacks.world_size);
  if (!stacks.role.empty())
    text += ", " + printable(stacks.role);
  if (!stacks.python_version.empty())
    text += ", Python " + printable(stacks.python_version);
  return text + '\n' + text_below(stacks);
}

} // namespace troupe::os
