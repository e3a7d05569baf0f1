#include "launch/mains/programs.hpp"
#include "launch/options/nearest.hpp"
#include "launch/options/version.hpp"
#include "launch/wiring/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

using namespace troupe;
using namespace troupe::launch;

namespace {

struct part {
  std::string_view verb;
  std::string_view name; ///< a link of this name to the program is the same as the verb
  std::string_view what;
  bool has_the_verb; ///< the other program's own command line begins with it
  int (*run)(int argc, char** argv);
  std::string_view also = {}; ///< another project's name for the same command line
};

constexpr std::array parts{
    part{"run", "actor-launcher", "start training on this machine, and keep it alive", false,
         actor_launcher},
    part{"doctor", "actor-launcher doctor", "say what this machine lacks for a job", false,
         doctor_program},
    part{"master", "actor-master", "be the master of a job, on a machine that trains nothing",
         false, actor_master},
    part{"operator", "actor-operator", "run ElasticJobs in Kubernetes", false, actor_operator},
    part{"shell", "actor-shell", "look into a running job", false, actor_shell},
    part{"ps", "actor-shell ps", "list this user's jobs on this machine", true, actor_shell},
    part{"tree", "actor-shell tree", "show the only one, or that of --master", true, actor_shell},
    part{"stacks", "actor-stacks", "merge dumped stacks of all ranks into one picture", false,
         actor_stacks, "xpu_timer_stacktrace_viewer"},
    part{"saver", "troupe-saver", "write checkpoints; troupe.checkpoint starts it", false,
         troupe_saver},
    part{"dump", "troupe-dump", "show what processes are doing, without their help", false,
         dump_program},
    part{"trace", "xpu_timer_launch", "run a program whose calls of CUDA and NCCL are timed", false,
         trace_program},
    part{"probe", "troupe-probe", "find out how this node is by itself", false, probe_program},
};

std::string usage() {
  std::string text = "usage: troupe VERB ...\n\n";
  for (const auto& p : parts)
    text += fmt::format("  {:8} {} ({})\n", p.verb, p.what, p.name);
  return text + "\n'troupe VERB --help' tells the options of each.\n";
}

int refuse(const std::string& word) {
  std::vector<std::string> verbs;
  for (const auto& p : parts)
    verbs.emplace_back(p.verb);
  const auto meant = nearest(word, verbs);
  return report_error("troupe",
                      meant.empty() ? fmt::format("'{}' is no verb (see troupe --help)", word)
                                    : fmt::format("'{}' is no verb; did you mean {}?", word, meant),
                      exit_usage);
}

/// What other launchers are called: tools that start one by its name find this program through a
/// link of theirs.
constexpr std::array launchers_names{std::string_view("torchrun"), std::string_view("dlrover-run")};

} // namespace

/// Programs that are installed under several names would be as many copies of the same code, on
/// disk and in memory. So there is one, which is what it is called.
int main(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "troupe";
  const auto called = path.substr(path.rfind('/') + 1);
  for (const auto& p : parts)
    if (called == p.name || called == p.also)
      return p.run(argc, argv);
  if (std::find(launchers_names.begin(), launchers_names.end(), called) != launchers_names.end())
    return actor_launcher(argc, argv);
  if (argc < 2) {
    std::fputs(usage().c_str(), stderr);
    return exit_usage;
  }
  const std::string_view word = argv[1];
  for (const auto& p : parts)
    if (word == p.verb) {
      if (p.has_the_verb)
        return p.run(argc, argv);
      argv[1] = argv[0]; // its own place is looked at for the interpreter beside it
      return p.run(argc - 1, argv + 1);
    }
  if (word == "--version") {
    std::fputs(version_text().c_str(), stdout);
    return exit_success;
  }
  if (word != "-h" && word != "--help")
    return refuse(std::string(word));
  std::fputs(usage().c_str(), stdout);
  return exit_success;
}
