#include "launch/shell/tree_lines.hpp"

#include "launch/shell/columns.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace troupe::launch {

namespace {

constexpr std::size_t state_columns = 8;  // "starting"
constexpr std::size_t uptime_columns = 5; // "412ms"

/// A row before the width of the names is known.
struct raw_line {
  std::string branches;
  std::string name;
  /// Empty: the row is no living actor, and `text` begins in this column.
  std::string state;
  std::string uptime;
  std::string text;
  mood how = mood::calm;
};

std::string ago(const sup::past_end& end) {
  return fmt::format("ended {} ago{}{}", short_time(end.ago), end.reason().empty() ? "" : ": ",
                     end.reason());
}

/// Why it is not there. One that has done its work is not "down": it is not started again.
std::string absence(const sup::node_report& r) {
  if (r.last_end && (r.state == "ended" || !r.last_end->why))
    return ago(*r.last_end);
  auto text = r.state;
  if (!r.phase.empty())
    text += ": " + r.phase;
  if (r.last_end)
    text += ", " + ago(*r.last_end);
  return text;
}

/// What a living actor does. Trouble stands in front: the end of the line may be cut.
std::string activity(const sup::node_report& r) {
  std::vector<std::string> facts;
  const auto end = r.last_end && r.last_end->why ? ago(*r.last_end) : std::string();
  const bool recent = !end.empty() && r.last_end->ago <= limits::ended_shown_for;
  if (recent)
    facts.push_back(end);
  if (r.unexpected > 0)
    facts.push_back(
        fmt::format("{} unexpected message{}", r.unexpected, r.unexpected == 1 ? "" : "s"));
  if (r.mailbox > 0)
    facts.push_back(fmt::format("{} message{} wait{}", r.mailbox, r.mailbox == 1 ? "" : "s",
                                r.mailbox == 1 ? "s" : ""));
  for (const auto& b : r.budgets)
    if (b.of.empty())
      facts.push_back(fmt::format("restarts {}/{}", b.used, b.allowed));
  if (!r.phase.empty())
    facts.push_back(r.phase);
  if (r.restarts > 0)
    facts.push_back(fmt::format("restarted {} time{}", r.restarts, r.restarts == 1 ? "" : "s"));
  if (!end.empty() && !recent)
    facts.push_back(end);
  return fmt::format("{}", fmt::join(facts, ", "));
}

std::optional<generation> newest_generation(const sup::node_report& r) {
  auto newest = generation_in(r.name);
  for (const auto& child : r.children)
    newest = std::max(newest, newest_generation(child));
  return newest;
}

/// Names as a person reads them. The term of the newest generation goes without saying; that of
/// another master's generations is told.
class short_names {
 public:
  explicit short_names(const sup::node_report& tree) {
    const auto newest = newest_generation(tree);
    const auto full = newest ? in_full(*newest) : std::string();
    const auto shown = newest ? fmt::format("generation {}", count_of(*newest)).size() : 0;
    of_term_ = full.substr(shown);
  }

  std::string of(const sup::node_report& r) const {
    auto name = r.name;
    if (generation_in(name) && name.size() > of_term_.size() &&
        name.compare(name.size() - of_term_.size(), of_term_.size(), of_term_) == 0)
      name.resize(name.size() - of_term_.size());
    return os::printable(name);
  }

 private:
  std::string of_term_; ///< " of term 1763935000123"
};

raw_line line_of(const sup::node_report& r, std::string name, std::string branches) {
  raw_line line{std::move(branches), std::move(name), {}, {}, {}, mood_of(r)};
  const bool lives = r.state == "running" || r.state == "starting" || r.state == "stopping";
  if (lives) {
    line.state = r.state;
    line.uptime = short_time(r.uptime);
  }
  line.text = os::printable(lives ? activity(r) : absence(r));
  return line;
}

/// A name that restarts count against has a line below its supervisor.
raw_line line_of(const sup::budget_use& b, std::string branches) {
  return {std::move(branches),
          "charged to " + os::printable(b.of),
          {},
          {},
          fmt::format("restarts {}/{}", b.used, b.allowed),
          b.used > 0 && b.used >= b.allowed ? mood::alert : mood::calm};
}

/// Writes a row and those below it: budgets of names, then what has ended well, then the others.
class writer {
 public:
  writer(std::vector<raw_line>& out, const sup::node_report& tree) : out_(out), names_(tree) {
    out_.push_back(line_of(tree, names_.of(tree), {}));
    write_below(tree, {});
  }

 private:
  void write_below(const sup::node_report& r, const std::string& indent) {
    std::vector<const sup::node_report*> over, others;
    for (const auto& child : r.children)
      (mood_of(child) == mood::over ? over : others).push_back(&child);
    std::vector<const sup::budget_use*> budgets;
    for (const auto& b : r.budgets)
      if (!b.of.empty() && b.used > 0)
        budgets.push_back(&b);
    auto left = budgets.size() + (over.empty() ? 0 : 1) + others.size();
    const auto branches = [&] { return indent + (--left == 0 ? "└ " : "├ "); };
    for (const auto* b : budgets)
      out_.push_back(line_of(*b, branches()));
    if (!over.empty())
      out_.push_back(line_of_ended_well(over, branches()));
    for (const auto* child : others) {
      out_.push_back(line_of(*child, names_.of(*child), branches()));
      write_below(*child, indent + (left == 0 ? "  " : "│ "));
    }
  }

  raw_line line_of_ended_well(const std::vector<const sup::node_report*>& all,
                              std::string branches) const {
    if (all.size() == 1)
      return line_of(*all.front(), names_.of(*all.front()), std::move(branches));
    std::vector<std::string> names;
    for (const auto* one : all)
      names.push_back(names_.of(*one));
    return {std::move(branches),
            fmt::format("{} ended well", all.size()),
            {},
            {},
            fmt::format("{}", fmt::join(names, ", ")),
            mood::over};
  }

  std::vector<raw_line>& out_;
  short_names names_;
};

/// Names take what they need, but not the room for what is said about them.
std::size_t name_columns(const std::vector<raw_line>& lines, std::size_t width) {
  std::size_t widest = 0;
  for (const auto& l : lines)
    widest = std::max(widest, columns_of(l.branches) + columns_of(l.name));
  return width == 0 ? widest : std::min(widest, std::max<std::size_t>(width * 45 / 100, 12));
}

std::string without_end_spaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

} // namespace

std::string short_time(duration d) {
  using namespace std::chrono;
  const auto ms = duration_cast<milliseconds>(d).count();
  if (ms < 1'000)
    return fmt::format("{}ms", ms);
  const auto seconds = ms / 1'000;
  if (seconds < 120)
    return fmt::format("{}s", seconds);
  const auto minutes = seconds / 60;
  if (minutes < 120)
    return fmt::format("{}m", minutes);
  return minutes < 48 * 60 ? fmt::format("{}h", minutes / 60)
                           : fmt::format("{}d", minutes / (24 * 60));
}

std::vector<tree_line> lay_out(const sup::node_report& tree, std::size_t width) {
  std::vector<raw_line> raw;
  writer(raw, tree);
  const auto names = name_columns(raw, width);
  std::vector<tree_line> lines;
  for (const auto& l : raw) {
    const auto room = names - std::min(names, columns_of(l.branches));
    auto text = fitted(l.name, room) + "  ";
    if (!l.state.empty())
      text += fitted(l.state, state_columns) + " " +
              std::string(uptime_columns - std::min(uptime_columns, l.uptime.size()), ' ') +
              l.uptime + "  ";
    text += l.text;
    const auto wide = width - std::min(width, columns_of(l.branches));
    lines.push_back(
        {l.branches, without_end_spaces(width == 0 ? text : cut_to(text, wide)), l.how});
  }
  return lines;
}

std::string painted(const std::vector<tree_line>& lines, bool colours) {
  constexpr auto quiet = "\x1b[2m", yellow = "\x1b[33m", red = "\x1b[31m", plain = "\x1b[0m";
  std::string out;
  for (const auto& l : lines) {
    const auto* colour = l.how == mood::bad     ? red
                         : l.how == mood::alert ? yellow
                         : l.how == mood::over  ? quiet
                                                : "";
    if (!colours)
      out += l.branches + l.text + "\n";
    else
      out += fmt::format("{}{}{}{}{}{}\n", quiet, l.branches, plain, colour, l.text, plain);
  }
  return out;
}

} // namespace troupe::launch
