#include "launch/wiring/failure_summary.hpp"

#include "actors/master/recovery/exit_classes.hpp"
#include "launch/wiring/failure_hint.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sstream>

namespace troupe::launch {

namespace {

constexpr std::size_t width_max = 60;
constexpr std::size_t lines_shown = 20;

/// Classes that the exit code does not tell; torch has no such line.
std::string class_worth_telling(actors::exit_class which) {
  const bool told =
      which == actors::exit_class::HARDWARE || which == actors::exit_class::OUT_OF_MEMORY;
  return told ? actors::treatment_of(which).name : "";
}

worker_failure taken_from(messages::WorkerFailure::Reader f) {
  return {f.getNode().cStr(),
          f.getHost().cStr(),
          f.getRank(),
          f.getLocalRank(),
          f.getPid(),
          f.getExitCode(),
          f.getMessage().cStr(),
          f.getTraceback().cStr(),
          f.getLogFile().cStr(),
          f.getUnixTimeMs(),
          class_worth_telling(f.getExitClass()),
          f.getMatchedLine().cStr(),
          f.getLogTail().cStr()};
}

std::string time_of(std::int64_t unix_time_ms) {
  return fmt::format("{:%Y-%m-%d_%H:%M:%S}",
                     fmt::localtime(static_cast<std::time_t>(unix_time_ms / 1000)));
}

std::string signal_name(std::int32_t exit_code) {
  const char* name = exit_code < 0 ? ::sigabbrev_np(-exit_code) : nullptr;
  return name ? fmt::format("SIG{}", name) : "<N/A>";
}

/// What torch has in the place of a traceback if there is none.
std::string explanation(const worker_failure& f) {
  if (!f.traceback.empty())
    return f.traceback;
  if (f.pid == 0)
    return f.message;
  if (f.exit_code < 0)
    return fmt::format("Signal {} ({}) received by PID {}", -f.exit_code, signal_name(f.exit_code),
                       f.pid);
  return "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";
}

/// A line of its own for each line, and nothing in them that a terminal would obey.
std::string indented(const std::string& text) {
  std::string all;
  for (std::size_t at = 0;;) {
    const auto end = text.find('\n', at);
    all += os::printable(std::string_view(text).substr(at, end - at));
    if (end == std::string::npos)
      return all;
    all += "\n  ";
    at = end + 1;
  }
}

/// What a worker without an error file had to say: its last lines. A traceback tells more.
std::string last_words(const worker_failure& f) {
  auto text = f.log_tail;
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (text.empty() || !f.traceback.empty())
    return {};
  auto begin = text.size();
  for (std::size_t lines = 0; lines < lines_shown && begin != std::string::npos && begin > 0;
       ++lines)
    begin = text.rfind('\n', begin - 1);
  const auto shown = begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
  return "\n  end of its stderr:\n  " + indented(shown);
}

std::string hint(const worker_failure& f) {
  const auto text = hint_for(f);
  return text.empty() ? "" : "\n  hint      : " + text;
}

std::string last_saved(const std::string& checkpoint) {
  return checkpoint.empty() ? "" : "\n  checkpoint: " + os::printable(checkpoint);
}

std::string class_in_words(const worker_failure& f) {
  if (f.exit_class.empty())
    return {};
  const auto matched_line = f.matched_line.empty()
                                ? ""
                                : fmt::format("  known by  : {}\n", os::printable(f.matched_line));
  return fmt::format("  class     : {}\n{}", f.exit_class, matched_line);
}

std::string block(std::size_t index, const worker_failure& f) {
  const auto name = signal_name(f.exit_code);
  return fmt::format(
      "[{}]:\n"
      "  time      : {}\n"
      "  host      : {}\n"
      "  rank      : {} (local_rank: {})\n"
      "  exitcode  : {} (pid: {}) {}\n"
      "{}"
      "  error_file: {}\n"
      "  traceback : {}{}",
      index, time_of(f.unix_time_ms), os::printable(f.host.empty() ? f.node : f.host), f.rank,
      f.local_rank, f.exit_code, f.pid, name == "<N/A>" ? "" : fmt::format(" ({})", name),
      class_in_words(f), f.error_file.empty() ? "<N/A>" : os::printable(f.error_file),
      indented(explanation(f)), last_words(f));
}

std::size_t width_of(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    widest = std::max(widest, line.size());
  return widest;
}

} // namespace

std::vector<worker_failure>
all_failures(const std::optional<messages::msg<messages::Conclude>>& verdict,
             const std::optional<messages::msg<messages::Failed>>& own) {
  std::vector<worker_failure> all;
  if (verdict) {
    auto view = verdict->read();
    for (auto f : view->getFailures())
      all.push_back(taken_from(f));
  }
  if (!own)
    return all;
  auto view = own->read();
  for (auto f : view->getFailures()) {
    const auto mine = taken_from(f);
    const auto known = std::find_if(all.begin(), all.end(), [&mine](const worker_failure& k) {
      return k.node == mine.node && k.local_rank == mine.local_rank && k.pid == mine.pid;
    });
    if (known == all.end())
      all.push_back(mine);
    else if (known->log_tail.empty())
      known->log_tail = mine.log_tail; // a verdict has the root cause's only
  }
  return all;
}

std::string failure_summary(const std::string& what, const std::vector<worker_failure>& failures,
                            const std::string& reason, const std::string& checkpoint) {
  const auto title = os::printable(what) + " FAILED";
  auto width = title.size();
  std::string root = os::printable(reason), others;
  if (!failures.empty()) {
    // Numbered in order of rank, as torch does; the root cause keeps its number.
    std::vector<std::size_t> by_rank(failures.size());
    for (std::size_t i = 0; i < by_rank.size(); ++i)
      by_rank[i] = i;
    std::stable_sort(by_rank.begin(), by_rank.end(), [&failures](std::size_t a, std::size_t b) {
      return failures[a].rank < failures[b].rank;
    });
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
      const auto text = block(i, failures[by_rank[i]]);
      width = std::max(width, width_of(text));
      if (by_rank[i] == 0)
        root = text + hint(failures[by_rank[i]]) + last_saved(checkpoint);
      else
        others += text + "\n";
    }
  }
  width = std::min(width, width_max);
  const std::string thick(width, '='), thin(width, '-');
  if (failures.empty())
    return fmt::format("{}\n{}\n{}\n{}\n{}\n", thick, title, thin, root, thick);
  return fmt::format("{}\n{}\n{}\nFailures:\n{}{}\nRoot Cause (first observed failure):\n{}\n{}\n",
                     thick, title, thin, others.empty() ? "  <NO_OTHER_FAILURES>\n" : others, thin,
                     root, thick);
}

int exit_code_of(const messages::msg<messages::Conclude>& verdict) {
  auto view = verdict.read();
  const auto failures = view->getFailures();
  const auto code = failures.size() > 0 ? failures[0].getExitCode() : 0;
  if (code == 0)
    return 1;
  return code > 0 ? code : 128 - code;
}

} // namespace troupe::launch
