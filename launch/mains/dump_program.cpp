#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/limits.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/stacks/dump.hpp"
#include "runtime/os/stacks/dump_text.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "troupe-dump";
constexpr auto usage =
    R"(usage: troupe-dump [--python-only | --native-only] [--children] [--samples N] [--apart MS]
                   [--within MS] [--messages [--world N]] PID[:RANK]...

What processes are doing: the stacks of all their threads, Python's and native.
They need not help, and go on meanwhile.

  --python-only  stop no thread
  --native-only  leave out Python's frames
  --children     with the children of each, as the workers of a data loader are
  --samples N    look N times whether each moves (0: do not; 2 to 100)
  --apart MS     so far apart (200)
  --within MS    end after this, whatever is held up (10000)
  --messages     not for people: ProcessStacks messages, as in the dump file of a rank, each as
                 soon as it is there
  --world N      of how many ranks each RANK is one
)";

struct dump_words {
  os::dump_options what;
  int samples = 0;
  std::chrono::milliseconds apart{200};
  std::chrono::milliseconds within{10'000};
  bool with_children = false;
  bool as_messages = false;
  int world = 0;
  std::vector<pid_t> pids;
  std::vector<int> ranks; ///< of each
};

constexpr int samples_max = 100, milliseconds_max = 600'000;
constexpr int pids_max = 1'024;
constexpr int ranks_max = limits::ranks_max - 1;

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

/// The options that are words alone.
bool take_word(const std::string& word, dump_words& o) {
  if (word == "--python-only")
    o.what.native = false;
  else if (word == "--native-only")
    o.what.python = false;
  else if (word == "--children")
    o.with_children = true;
  else if (word == "--messages")
    o.as_messages = true;
  else
    return false;
  return true;
}

/// "4711" or "4711:3".
result<void> take_process(const std::string& word, dump_words& o) {
  const auto colon = std::min(word.find(':'), word.size());
  const auto pid = number(word.substr(0, colon), 1, 1 << 30);
  const auto rank =
      colon == word.size() ? std::optional<int>(0) : number(word.substr(colon + 1), 0, ranks_max);
  if (!pid || !rank)
    return failure(errc::invalid, fmt::format("'{}' is neither an option nor the number of a "
                                              "process (see troupe-dump --help)",
                                              word));
  o.pids.push_back(*pid);
  o.ranks.push_back(*rank);
  return {};
}

result<void> check(const dump_words& o) {
  if (o.pids.empty() || o.pids.size() > pids_max)
    return failure(errc::invalid, fmt::format("1 to {} processes must be named", pids_max));
  if (!o.what.native && !o.what.python)
    return failure(errc::invalid, "--python-only and --native-only leave nothing");
  if (o.samples == 1)
    return failure(errc::invalid, "one sample tells no motion: --samples takes 0, or 2 to 100");
  for (const auto rank : o.ranks)
    if (o.world > 0 && rank >= o.world)
      return failure(errc::invalid, fmt::format("rank {} is not one of {}", rank, o.world));
  return {};
}

result<dump_words> parse(const std::vector<std::string>& words) {
  dump_words o;
  int apart = static_cast<int>(o.apart.count()), within = static_cast<int>(o.within.count());
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto& word = words[at];
    if (take_word(word, o))
      continue;
    bool is_taken = false;
    for (const auto& t : {take(words, at, "--samples", 0, samples_max, o.samples),
                          take(words, at, "--apart", 1, milliseconds_max, apart),
                          take(words, at, "--within", 1, milliseconds_max, within),
                          take(words, at, "--world", 1, ranks_max, o.world)}) {
      if (!t)
        return tl::make_unexpected(t.error());
      is_taken = is_taken || *t;
    }
    if (is_taken)
      continue;
    if (const auto taken = take_process(word, o); !taken)
      return tl::make_unexpected(taken.error());
  }
  if (const auto fine = check(o); !fine)
    return tl::make_unexpected(fine.error());
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

/// All at once, so that a reader of messages sees whole ones; false: nothing reads any more.
bool write_out(const std::string& bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
         std::fflush(stdout) == 0;
}

class dumps {
 public:
  explicit dumps(const dump_words& o) : o_(o) {}

  int run() {
    moves_.resize(o_.pids.size(), os::motion::unknown);
    if (o_.samples > 0)
      moves_ = reader_.watch(o_.pids, o_.samples, o_.apart);
    for (std::size_t n = 0; n < o_.pids.size() && is_read_; ++n) {
      auto dump = reader_.dump(o_.pids[n], o_.what);
      if (!dump) {
        code_ = report_error(program, dump.error().what, exit_failure);
        continue;
      }
      dump->stacks.moves = moves_[n];
      write(*dump, n);
      if (o_.with_children)
        write_children(dump->facts.children, n);
    }
    return is_read_ ? code_ : exit_failure;
  }

 private:
  void write_children(const std::vector<pid_t>& children, std::size_t n) {
    for (const auto child : children)
      if (auto dump = reader_.dump(child, o_.what); dump && is_read_) {
        if (dump->stacks.role.empty())
          dump->stacks.role = "its child " + dump->facts.name;
        write(*dump, n);
      } // else it has ended since, which children may
  }

  void write(os::process_dump& dump, std::size_t n) {
    dump.stacks.rank = static_cast<std::uint32_t>(o_.ranks[n]);
    dump.stacks.world_size = static_cast<std::uint32_t>(o_.world);
    is_read_ = write_out(o_.as_messages ? diag::dump_of({dump.stacks})
                                        : text_of(dump, o_.samples > 0) + "\n");
  }

  const dump_words& o_;
  os::stack_reader reader_;
  std::vector<os::motion> moves_;
  int code_ = exit_success;
  bool is_read_ = true;
};

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
  leave(dumps(*o).run());
}
