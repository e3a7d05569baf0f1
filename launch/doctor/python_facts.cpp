#include "launch/doctor/ask.hpp"
#include "launch/doctor/python.hpp"
#include "launch/options/values.hpp"
#include "launch/wiring/command_check.hpp"
#include "runtime/os/contents_of.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

/// What the judges of python.hpp are told: the interpreter itself is asked.
namespace troupe::launch::doctor {

namespace {

/// Its own lines carry a mark, since what is imported may print as well. sys.path begins as it does
/// for the script, so a folder called torch beside it is found here, too.
constexpr auto question = R"(
import sys, time
def say(key, value): print("troupe-doctor:%s=%s" % (key, value)); sys.stdout.flush()
if sys.path[:1] == [""]: sys.path[0] = sys.argv[1]
say("version", ".".join(map(str, sys.version_info[:3])))
import importlib.util, os
spec = importlib.util.find_spec("troupe")
folders = list(spec.submodule_search_locations or ()) if spec else ()
say("troupe", int(any(os.path.exists(os.path.join(f, "programs.py")) for f in folders)))
try:
    from importlib.metadata import distribution
    other = distribution("troupe")
    if other.read_text("RECORD") is not None: say("other_troupe", other.version)
except Exception: pass
began = time.time()
try:
    import torch
    version = torch.__version__
except BaseException as e:
    text = ("%s: %s" % (type(e).__name__, e)).splitlines()
    say("torch_error", text[0])
    sys.exit(0)
say("seconds", "%.1f" % (time.time() - began))
import torch.distributed as dist
say("distributed", int(dist.is_available()))
if dist.is_available():
    say("gloo", int(dist.is_gloo_available()))
    say("nccl", int(dist.is_nccl_available()))
say("built_for", torch.version.cuda or getattr(torch.version, "hip", None) or "")
say("devices", torch.cuda.device_count())
say("torch", version)
)";

/// "550.54.15", of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  …".
std::string driver_version() {
  std::istringstream words(os::contents_of("/proc/driver/nvidia/version"));
  for (std::string word; words >> word;)
    if (const auto dot = word.find('.'); dot != std::string::npos && digits(word.substr(0, dot)))
      return word;
  return {};
}

std::string folder_of_script(const launcher_options& o) {
  if (o.command.empty() || o.module)
    return std::filesystem::current_path();
  return std::filesystem::absolute(o.command.front()).parent_path();
}

} // namespace

command_facts look_at_command(const launcher_options& o, const machine_facts& machine) {
  command_facts seen;
  if (o.command.empty())
    return seen;
  seen.script = o.command.front();
  const auto contract = contract_on(o, machine);
  seen.wrong =
      contract ? command_validation_error(o, *contract).value_or("") : contract.error().what;
  return seen;
}

python_facts look_at_python(const launcher_options& o, const machine_facts& machine) {
  python_facts seen;
  seen.wanted = !o.no_python || o.run_path;
  seen.chosen = o.python;
  seen.others = machine.pythons;
  seen.workers = o.processes_per_node;
  seen.nodes = o.nodes_max;
  seen.gpus = machine.gpus;
  seen.driver = driver_version();
  if (!seen.wanted)
    return seen;
  const auto answer = ask({o.python.program, "-c", question, folder_of_script(o)}, torch_within);
  if (!answer) {
    seen.failed = answer.error().what;
    return seen;
  }
  seen.in_time = answer->in_time;
  take_answer(seen, answer->output);
  return seen;
}

} // namespace troupe::launch::doctor
