#include "tests/sim/run.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

#include <sys/resource.h>

/// Many lives of simulated jobs, one seed each. Prints one line per failure with the command that
/// replays it.
namespace {

using namespace troupe;
using namespace troupe::sim;

struct settings {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  std::uint32_t nodes = 0;
  std::string plan_name;
  std::string plans = TROUPE_SIM_PLANS;
  bool twice = false;
  bool trace = false;
};

struct tally {
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  std::uint64_t successes = 0;
  std::uint64_t processes = 0;
  std::uint64_t generations = 0;
  std::uint64_t lines = 0;
  duration simulated{};
};

std::string replay_command(const settings& s, std::uint64_t seed) {
  auto text = fmt::format("./x sim SEED={}", seed);
  if (s.nodes > 0)
    text += fmt::format(" NODES={}", s.nodes);
  if (!s.plan_name.empty())
    text += fmt::format(" PLAN={}", s.plan_name);
  return text + " --trace";
}

void tell_failure(const settings& s, std::uint64_t seed, const run_outcome& o) {
  fmt::print("seed {}: {} is broken: {}\n", seed, o.broken->invariant, o.broken->what);
  if (!s.trace)
    for (const auto& line : o.last_lines)
      fmt::print("  | {:.240}\n", line);
  fmt::print("  replay: {}\n", replay_command(s, seed));
}

bool run_seed(const settings& s, std::uint64_t seed, const std::optional<plan>& faults,
              tally& all) {
  run_options o{seed, s.nodes, faults, {}};
  if (s.trace)
    o.on_line = [](const std::string& line) { fmt::print("{}\n", line); };
  const auto first = run(o);
  ++all.runs;
  all.successes += first.success ? 1 : 0;
  all.processes += first.processes;
  all.generations += first.generations;
  all.lines += first.lines;
  all.simulated += first.simulated;
  if (first.broken) {
    tell_failure(s, seed, first);
    return false;
  }
  if (!s.twice)
    return true;
  const auto second = run(run_options{seed, s.nodes, faults, {}});
  if (second.digest == first.digest)
    return true;
  fmt::print("seed {}: two runs differ ({} and {} lines); the first difference is where two "
             "outputs of this differ\n"
             "  replay: {}\n",
             seed, first.lines, second.lines, replay_command(s, seed));
  return false;
}

void summarize(const settings& s, const tally& all) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double cpu = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  fmt::print("{} seeds{}: {} failed; {} jobs succeeded; {} generations, {} processes, {} trace "
             "lines, {} simulated; "
             "{:.1f} s of CPU, {:.0f} MB\n",
             all.runs, s.twice ? " (each twice)" : "", all.failures, all.successes, all.generations,
             all.processes, all.lines, in_words(all.simulated), cpu,
             static_cast<double>(used.ru_maxrss) / 1024);
}

} // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Simulated clusters under faults; every run is decided by its seed.");
  app.add_option("--seed", s.seed, "the first seed");
  app.add_option("--seeds", s.seeds, "how many seeds, one after the other");
  app.add_option("--nodes", s.nodes, "nodes per job (otherwise the seed decides, 4 to 16)");
  app.add_option("--plan", s.plan_name, "a fault plan by name (otherwise the seed makes one)");
  app.add_option("--plans", s.plans, "where the named plans are");
  app.add_flag("--twice", s.twice, "run each seed twice and compare");
  app.add_flag("--trace", s.trace, "print what happens");
  CLI11_PARSE(app, argc, argv);

  std::optional<plan> faults;
  if (!s.plan_name.empty()) {
    auto loaded = plan::load(s.plans, s.plan_name);
    if (!loaded) {
      fmt::print(stderr, "swarm: {}\n", loaded.error().what);
      return 2;
    }
    faults = std::move(*loaded);
  }
  tally all;
  for (std::uint64_t i = 0; i < s.seeds; ++i)
    if (!run_seed(s, s.seed + i, faults, all))
      ++all.failures;
  summarize(s, all);
  return all.failures > 0 ? 1 : 0;
}
