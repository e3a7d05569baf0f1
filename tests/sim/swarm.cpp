#include "runtime/base/rare.hpp"
#include "tests/sim/run.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
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
  std::uint64_t plan_seeds = 0;
  std::uint32_t nodes = 0;
  std::string plan_name;
  std::string plans = TROUPE_SIM_PLANS;
  life of = life::any;
  bool twice = false;
  bool trace = false;
  bool marks = false;
  bool demand_marks = false;
};

struct tally {
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  std::uint64_t successes = 0;
  std::uint64_t processes = 0;
  std::uint64_t generations = 0;
  std::uint64_t lines = 0;
  duration simulated{};
  /// How many seeds have reached each mark that is linked into this program.
  std::map<std::string, std::uint64_t> reached;
};

std::string replay_command(const settings& s, const std::string& plan_name, std::uint64_t seed) {
  auto text = fmt::format("./x sim SEED={}", seed);
  if (s.nodes > 0)
    text += fmt::format(" NODES={}", s.nodes);
  if (!plan_name.empty())
    text += fmt::format(" PLAN={}", plan_name);
  if (s.of == life::storage)
    text += " --storage";
  if (s.of == life::two_masters)
    text += " --two-masters";
  return text + " --trace";
}

void tell_failure(const settings& s, const std::string& replay, std::uint64_t seed,
                  const run_outcome& o) {
  fmt::print("seed {}: {} is broken: {}\n", seed, o.broken->invariant, o.broken->what);
  if (!s.trace)
    for (const auto& line : o.last_lines)
      fmt::print("  | {:.240}\n", line);
  fmt::print("  replay: {}\n", replay);
}

void forget_marks() {
  for (auto* m = rare_mark::first(); m; m = m->next())
    m->forget();
}

void count_marks(tally& all) {
  for (auto* m = rare_mark::first(); m; m = m->next())
    all.reached[m->what()] += m->reached() ? 1 : 0;
}

bool run_seed(const settings& s, std::uint64_t seed, const std::optional<plan>& faults,
              tally& all) {
  const auto replay = replay_command(s, faults ? faults->name : std::string(), seed);
  run_options o{seed, s.nodes, faults, s.of, {}};
  if (s.trace)
    o.on_line = [](const std::string& line) { fmt::print("{}\n", line); };
  forget_marks();
  const auto first = run(o);
  count_marks(all);
  ++all.runs;
  all.successes += first.success ? 1 : 0;
  all.processes += first.processes;
  all.generations += first.generations;
  all.lines += first.lines;
  all.simulated += first.simulated;
  if (first.broken) {
    tell_failure(s, replay, seed, first);
    return false;
  }
  if (!s.twice)
    return true;
  const auto second = run(run_options{seed, s.nodes, faults, s.of, {}});
  if (second.digest == first.digest)
    return true;
  fmt::print("seed {}: two runs differ ({} and {} lines); the first difference is where two "
             "outputs of this differ\n"
             "  replay: {}\n",
             seed, first.lines, second.lines, replay);
  return false;
}

void run_seeds(const settings& s, std::uint64_t seeds, const std::optional<plan>& faults,
               tally& all) {
  for (std::uint64_t i = 0; i < seeds; ++i)
    if (!run_seed(s, s.seed + i, faults, all))
      ++all.failures;
}

plan load(const settings& s, const std::string& name) {
  auto loaded = plan::load(s.plans, name);
  if (loaded)
    return std::move(*loaded);
  fmt::print(stderr, "swarm: {}\n", loaded.error().what);
  std::exit(2);
}

/// In the order of their names: what a directory happens to say first decides nothing.
std::set<std::string> names_of_plans(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(directory))
    if (file.path().extension() == ".txt")
      names.insert(file.path().stem().string());
  return names;
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

void tell_marks(const tally& all) {
  for (const auto& [what, seeds] : all.reached)
    fmt::print("{:7} seeds  {}\n", seeds, what);
}

/// A test that passes without having been where it matters says nothing.
std::uint64_t tell_missing_marks(const tally& all) {
  std::uint64_t missing = 0;
  for (const auto& [what, seeds] : all.reached) {
    if (seeds > 0)
      continue;
    fmt::print("no seed reached the mark '{}'\n", what);
    ++missing;
  }
  return missing;
}

} // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Simulated clusters under faults; every run is decided by its seed.");
  app.add_option("--seed", s.seed, "the first seed");
  app.add_option("--seeds", s.seeds, "how many seeds, one after the other");
  app.add_option("--plan-seeds", s.plan_seeds,
                 "so many seeds of each named plan besides, once each");
  auto* const nodes =
      app.add_option("--nodes", s.nodes, "nodes per job (otherwise the seed decides, 4 to 16)");
  auto* const plan =
      app.add_option("--plan", s.plan_name, "a fault plan by name (otherwise the seed makes one)");
  app.add_option("--plans", s.plans, "where the named plans are");
  auto* const storage = app.add_flag_callback(
      "--storage", [&s] { s.of = life::storage; },
      "jobs that save all the time, and what happens to disks");
  app.add_flag_callback(
         "--two-masters", [&s] { s.of = life::two_masters; },
         "such jobs of four nodes, of whom some follow another master for a while")
      ->excludes(storage)
      ->excludes(nodes)
      ->excludes(plan);
  app.add_flag("--twice", s.twice, "run each seed twice and compare");
  app.add_flag("--trace", s.trace, "print what happens");
  app.add_flag("--marks", s.marks, "print how many seeds reached each mark of a rare branch");
  app.add_flag("--demand-marks", s.demand_marks, "fail unless each mark is reached by some seed");
  CLI11_PARSE(app, argc, argv);

  tally all;
  run_seeds(s, s.seeds, s.plan_name.empty() ? std::nullopt : std::optional(load(s, s.plan_name)),
            all);
  auto once = s;
  once.twice = false;
  if (s.plan_seeds > 0)
    for (const auto& name : names_of_plans(s.plans))
      run_seeds(once, s.plan_seeds, load(s, name), all);
  summarize(s, all);
  if (s.marks)
    tell_marks(all);
  const auto missing = s.demand_marks ? tell_missing_marks(all) : 0;
  return all.failures + missing > 0 ? 1 : 0;
}
