#include "diag/stacks/dump_file.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/stacks/dump.hpp"
#include "runtime/os/stacks/dump_text.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "troupe-dump";
constexpr auto usage = "usage: troupe-dump [--python-only | --native-only] [--samples N] "
                       "[--apart MS] [--within MS] PID...\n"
                       "\n"
                       "What processes are doing: the stacks of all their threads, Python's and\n"
                       "native. They need not help, and go on meanwhile.\n"
                       "\n"
                       "  --python-only  stop no thread\n"
                       "  --native-only  leave out Python's frames\n"
                       "  --samples N    look N times whether each moves (0: do not; 2 to 100)\n"
                       "  --apart MS     so far apart (200)\n"
                       "  --within MS    end after this, whatever is held up (10000)\n";

struct dump_words {
  os::dump_options what;
  bool messages = false; ///< for the node supervisor instead of a person
  int samples = 0;
  std::chrono::milliseconds apart{200};
  std::chrono::milliseconds within{10'000};
  std::vector<pid_t> pids;
};

constexpr int samples_max = 100, milliseconds_max = 600'000;
constexpr std::size_t pids_max = 1'024;

std::optional<int> number(const std::string& text, int min, int max) {
  int value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < min || value > max)
    return std::nullopt;
  return value;
}

/// Takes `--name N` at `at`, if it is that; the refusal, if N is none.
result<bool> take(const std::vector<std::string>& words, std::size_t& at, const std::string& name,
                  int min, int max, int& into) {
  if (words[at] != name)
    return false;
  const auto value = at + 1 < words.size() ? number(words[at + 1], min, max) : std::nullopt;
  if (!value)
    return failure(errc::invalid, fmt::format("{} takes a number from {} to {}", name, min, max));
  into = *value;
  ++at;
  return true;
}

result<dump_words> parse(const std::vector<std::string>& words) {
  dump_words o;
  int apart = static_cast<int>(o.apart.count()), within = static_cast<int>(o.within.count());
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto& word = words[at];
    if (word == "--python-only") {
      o.what.native = false;
      continue;
    }
    if (word == "--messages") {
      o.messages = true;
      continue;
    }
    if (word == "--native-only") {
      o.what.python = false;
      continue;
    }
    bool is_taken = false;
    for (const auto& t : {take(words, at, "--samples", 0, samples_max, o.samples),
                          take(words, at, "--apart", 1, milliseconds_max, apart),
                          take(words, at, "--within", 1, milliseconds_max, within)}) {
      if (!t)
        return tl::make_unexpected(t.error());
      is_taken = is_taken || *t;
    }
    if (is_taken)
      continue;
    const auto pid = number(word, 1, 1 << 30);
    if (!pid)
      return failure(errc::invalid, fmt::format("'{}' is neither an option nor the number of a "
                                                "process (see troupe-dump --help)",
                                                word));
    o.pids.push_back(*pid);
  }
  if (o.pids.empty() || o.pids.size() > pids_max)
    return failure(errc::invalid, fmt::format("1 to {} processes must be named", pids_max));
  if (!o.what.native && !o.what.python)
    return failure(errc::invalid, "--python-only and --native-only leave nothing");
  o.apart = std::chrono::milliseconds(apart);
  o.within = std::chrono::milliseconds(within);
  return o;
}

/// Another thread than the one that may be held up.
void end_after(std::chrono::milliseconds within) {
  std::thread([within] {
    std::this_thread::sleep_for(within);
    leave(report_error(program, fmt::format("not all could be read within {}", in_words(within)),
                       exit_failure));
  }).detach();
}

} // namespace

/// A process of its own: what it reads (files of a server that is gone) may hold it up for good,
/// and then its parent, or its own alarm, ends it. What was read by then has been written.
int troupe::launch::dump_program(int argc, char** argv) {
  prepare_process(program);
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const auto& word : words)
    if (word == "-h" || word == "--help") {
      std::fputs(usage, stdout);
      return exit_success;
    }
  const auto o = parse(words);
  if (!o)
    return report_error(program, o.error().what, exit_usage);
  end_after(o->within);
  os::stack_reader reader;
  std::vector<os::motion> moves(o->pids.size(), os::motion::unknown);
  if (o->samples > 0)
    moves = reader.watch(o->pids, o->samples, o->apart);
  int code = exit_success;
  for (std::size_t n = 0; n < o->pids.size(); ++n) {
    auto dump = reader.dump(o->pids[n], o->what);
    if (!dump) {
      code = report_error(program, dump.error().what, exit_failure);
      continue;
    }
    dump->moves = moves[n];
    const auto out =
        o->messages ? diag::dump_of({dump->stacks}) : text_of(*dump, o->samples > 0) + "\n";
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
  }
  leave(code);
}
